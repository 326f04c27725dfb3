import { describe, expect, test } from '@jest/globals';
import { formatHostPort } from '../../../src/h2/serving/listen.js';

describe('formatHostPort', () => {
  test.each([
    ['127.0.0.1', 80, '127.0.0.1:80'],
    ['::1', 80, '[::1]:80'],
    ['::ffff:127.0.0.1', 80, '[::ffff:127.0.0.1]:80'],
    ['127.0.0.1', undefined, '127.0.0.1'],
    [undefined, undefined, 'unknown'],
  ])('%s and %s', (address, port, text) => {
    expect(formatHostPort(address, port)).toBe(text);
  });
});
