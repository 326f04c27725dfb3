import { describe, expect, test } from '@jest/globals';
import { normaliseTimeout } from '../../../src/grpc/timeout-header.js';

describe('normaliseTimeout', () => {
  test.each(['20m', '1S', '5M', '1H', '0m', '99999999m', '2147483S', '596H'])('leaves %s', (header) => {
    expect(normaliseTimeout(header)).toBe(header);
  });

  test.each(['2147484S', '35792M', '597H', '99999999H'])('drops %s, longer than any timer', (header) => {
    expect(normaliseTimeout(header)).toBeUndefined();
  });

  test.each([
    ['1n', '1m'],
    ['999u', '1m'],
    ['1000u', '1m'],
    ['1001u', '2m'],
    ['19999999n', '20m'],
    ['0u', '0m'],
  ])('rounds %s up to %s', (header, rounded) => {
    expect(normaliseTimeout(header)).toBe(rounded);
  });

  test.each(['', 'm', '20', '20x', '123456789m', '-1m', '1.5S'])('leaves malformed %s alone', (header) => {
    expect(normaliseTimeout(header)).toBe(header);
  });
});
