import { describe, expect, test } from '@jest/globals';
import { normaliseTimeout, timeoutMicros } from '../../../src/grpc/timeout-header.js';

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

  test.each(['597H', '35792M', '2147484S', '99999999H'])('knows no timer that is as long as %s', (header) => {
    expect(timeoutMicros(header)).toBe(Number.POSITIVE_INFINITY);
  });

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
  ])('finds "%s" malformed', (header) => {
    expect(timeoutMicros(header)).toBeNaN();
  });
});
