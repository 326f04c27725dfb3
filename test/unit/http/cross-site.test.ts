import { expect, test } from '@jest/globals';
import { isLoopbackHost } from '../../../src/http/cross-site.js';

test.each([
  ...['localhost', 'LOCALHOST', '127.0.0.1', '127.9.9.9', '::1'],
  ...['127.1', '0177.0.0.1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:7fff:ffff'],
])('only this machine reaches a port on %s', (host) => {
  expect(isLoopbackHost(host)).toBe(true);
});

test.each([
  ...['', '0.0.0.0', '0', '::', '10.0.0.1', '128.0.0.1', '::2', '::ffff:10.0.0.1', '::ffff:0.0.0.0'],
  ...['fe80::1', 'fe80::1%eth0', 'weir', 'localhost.site.example', '127.0.0.1.site.example', 'not a name'],
])('other machines may reach a port on "%s"', (host) => {
  expect(isLoopbackHost(host)).toBe(false);
});
