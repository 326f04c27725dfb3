import { expect, test } from '@jest/globals';
import { ipOfTarget } from '../../../src/runtime/no-server-name.js';

test.each([
  ['127.0.0.1:8081', '127.0.0.1'],
  ['127.0.0.1', '127.0.0.1'],
  ['[::1]:8081', '::1'],
  ['[::1]', '::1'],
  ['::1', '::1'],
  ['dns:127.0.0.1:8081', '127.0.0.1'],
  ['dns:///[::1]:8081', '::1'],
  ['dns://8.8.8.8/weir.test:8081', undefined],
  ['ipv4:127.0.0.1:8081,127.0.0.2:8081', '127.0.0.1'],
  ['ipv6:[::1]:8081,[::2]:8081', '::1'],
  ['localhost:8081', undefined],
  ['127.0.0.1.test:8081', undefined],
  ['unix:/run/weir.sock', undefined],
])('the IP address in the target %s', (target, ip) => {
  expect(ipOfTarget(target)).toBe(ip);
});
