import { describe, expect, test } from '@jest/globals';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { costCarry, costWhole, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';

describe('tokenBucketRate', () => {
  test('reduces the time of one token to lowest terms', () => {
    expect(tokenBucketRate(100, 10, 1_000_000)).toMatchObject({
      p: 100_000,
      q: 1,
      fillWhole: 10_000_000,
      fillCarry: 0,
    });
    expect(tokenBucketRate(10, 3, 1_000_000)).toMatchObject({
      p: 1_000_000,
      q: 3,
      fillWhole: 3_333_333,
      fillCarry: 1,
    });
  });

  test('costs are exact beyond 2^53', () => {
    const rate = tokenBucketRate(0xffff_ffff, 0xffff_fffb, UNIT_MICROS.day * 30);
    const exact = BigInt(0xffff_ffff) * BigInt(rate.p);
    expect(costWhole(rate, 0xffff_ffff)).toBe(Number(exact / BigInt(rate.q)));
    expect(costCarry(rate, 0xffff_ffff)).toBe(Number(exact % BigInt(rate.q)));
  });
});

test('reportedUnit is the unit in which an empty bucket fills', () => {
  expect(tokenBucketRate(60, 1, 1_000_000).reportedUnit()).toBe('minute');
  expect(tokenBucketRate(100, 10, 1_000_000).reportedUnit()).toBeUndefined();
  expect(windowRate('week', 5).reportedUnit()).toBe('week');
});
