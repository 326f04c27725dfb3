import { describe, expect, test } from '@jest/globals';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import { refillRemainder, refillWhole, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { BrokenInvariant } from '../../../src/runtime/invariant.js';

describe('tokenBucketRate', () => {
  test('reduces the time of one token to lowest terms', () => {
    expect(tokenBucketRate(100, 10, 1_000_000)).toMatchObject({
      refillNumerator: 100_000,
      refillDenominator: 1,
      fillWhole: 10_000_000,
      fillCarry: 0,
    });
    expect(tokenBucketRate(10, 3, 1_000_000)).toMatchObject({
      refillNumerator: 1_000_000,
      refillDenominator: 3,
      fillWhole: 3_333_333,
      fillCarry: 1,
    });
  });

  test('costs are exact beyond 2^53', () => {
    const rate = tokenBucketRate(0xffff_ffff, 0xffff_fffb, UNIT_MICROS.day * 30);
    const exact = BigInt(0xffff_ffff) * BigInt(rate.refillNumerator);
    expect(refillWhole(rate, 0xffff_ffff)).toBe(Number(exact / BigInt(rate.refillDenominator)));
    expect(refillRemainder(rate, 0xffff_ffff)).toBe(Number(exact % BigInt(rate.refillDenominator)));
  });
});

describe('a rate is built only from integers in range', () => {
  const wrong = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, 2 ** 53, null as unknown as number];

  test.each(wrong)('%d', (number) => {
    const built = [
      () => tokenBucketRate(number, 1, 1_000_000),
      () => tokenBucketRate(1, number, 1_000_000),
      () => tokenBucketRate(1, 1, number),
      () => tokenBucketRate(1, 1, 1_000_000, number),
      () => windowRate('second', number),
      () => windowRate('second', 1, { multiplier: number }),
      () => windowRate('second', 1, { maxDebt: number }),
      () => windowRate(number as unknown as 'second', 1),
      () => concurrencyRate(number),
    ];
    for (const build of built) expect(build).toThrow(BrokenInvariant);
  });

  test('a time to fill that is a safe integer', () => {
    expect(() => tokenBucketRate(0xffff_ffff, 1, 2 ** 52)).toThrow(BrokenInvariant);
  });

  test('0, which only a window and a debt can be', () => {
    expect(() => tokenBucketRate(0, 1, 1_000_000)).toThrow(BrokenInvariant);
    expect(() => tokenBucketRate(1, 0, 1_000_000)).toThrow(BrokenInvariant);
    expect(() => tokenBucketRate(1, 1, 0)).toThrow(BrokenInvariant);
    expect(() => concurrencyRate(0)).toThrow(BrokenInvariant);
    expect(windowRate('second', 0, { maxDebt: 0 }).requestsPerUnit).toBe(0);
  });
});

test('reportedUnit is the unit in which an empty bucket fills', () => {
  expect(tokenBucketRate(60, 1, 1_000_000).reportedUnit).toBe('minute');
  expect(tokenBucketRate(100, 10, 1_000_000).reportedUnit).toBeUndefined();
  expect(windowRate('week', 5).reportedUnit).toBe('week');
});
