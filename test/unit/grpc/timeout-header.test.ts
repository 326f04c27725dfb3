import { describe, expect, test } from '@jest/globals';
import { timeoutMicros } from '../../../src/grpc/timeout-header.js';

describe('timeoutMicros', () => {
  test.each([
    ['1n', 1],
    ['1001n', 2],
    ['7u', 7],
    ['20m', 20_000],
    ['0m', 0],
    ['3S', 3_000_000],
    ['2M', 120_000_000],
    ['596H', 2_145_600_000_000],
    ['99999999m', 99_999_999_000],
  ])('reads %s as %d', (header, micros) => {
    expect(timeoutMicros(header)).toBe(micros);
  });

  test.each(['597H', '35792M', '2147484S', '99999999H'])(
    'treats %s as unlimited, because it exceeds the longest timer',
    (header) => {
      expect(timeoutMicros(header)).toBe(Number.POSITIVE_INFINITY);
    },
  );

  test.each([
    '',
    'm',
    '1',
    '1x',
    '1 m',
    ' 1m',
    '1m ',
    '-1m',
    '1.5S',
    '123456789m',
    '١m',
    '1constructor',
    '1__proto__',
  ])('rejects "%s"', (header) => {
    expect(timeoutMicros(header)).toBeNaN();
  });
});
