import fc from 'fast-check';
import { MAX_FILL_MICROS } from '../../../src/limiter/rate-algorithm.js';
import { refillWhole, type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';

/** Rates that do not divide a second. */
export const AWKWARD_RATES: readonly TokenBucketRate[] = [
  tokenBucketRate(3, 3, UNIT_MICROS.second),
  tokenBucketRate(10, 3, UNIT_MICROS.second),
  tokenBucketRate(7, 7, UNIT_MICROS.minute),
  tokenBucketRate(100, 7, UNIT_MICROS.minute),
  tokenBucketRate(500, 1_000_000, UNIT_MICROS.day),
  tokenBucketRate(300_000, 299_993, UNIT_MICROS.second),
  tokenBucketRate(0xffff_ffff, 0xffff_fffb, 1_000),
];

/** Generates any rate that a policy may contain. */
export function arbitraryRate(): fc.Arbitrary<TokenBucketRate> {
  const count = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 0xffff_ffff }));
  const any = fc
    .tuple(
      count,
      count,
      fc.oneof(
        fc.integer({ min: 1_000, max: 10_000_000 }),
        fc.integer({ min: 1_000, max: UNIT_MICROS.year }),
      ),
    )
    .filter(
      ([max, tokens, interval]) =>
        refillWhole({ refillNumerator: interval, refillDenominator: tokens }, max) < MAX_FILL_MICROS,
    )
    .map(([max, tokens, interval]) => tokenBucketRate(max, tokens, interval));
  return fc.oneof(fc.constantFrom(...AWKWARD_RATES), any);
}

/** Generates relevant hits for `rate`: few, about its capacity, and extremely many. */
export function arbitraryHits(rate: TokenBucketRate): fc.Arbitrary<number> {
  return fc.oneof(
    { arbitrary: fc.integer({ min: 0, max: 5 }), weight: 4 },
    { arbitrary: fc.integer({ min: 0, max: rate.maxTokens }), weight: 4 },
    { arbitrary: fc.integer({ min: Math.max(0, rate.maxTokens - 2), max: rate.maxTokens + 2 }), weight: 2 },
    { arbitrary: fc.constantFrom(2 ** 32, Number.MAX_SAFE_INTEGER), weight: 1 },
  );
}

/**
 * Maximum span: after 120 spans and twice the fill time of any bucket, times are still below 2^53, as real times are
 * until the year 2255.
 */
const LONGEST_SPAN = 20_000_000_000_000;

/** Generates relevant spans of time for `rate`: zero, a few microseconds, about a token, and about a full bucket. */
export function arbitrarySpan(rate: TokenBucketRate): fc.Arbitrary<number> {
  const token = Math.min(refillWhole(rate, 1), Math.floor(LONGEST_SPAN / 3));
  return fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 10 }),
    fc.integer({ min: 0, max: 2 * token + 2 }),
    fc.integer({ min: Math.max(0, token - 1), max: token + 1 }),
    fc.integer({ min: 0, max: Math.min(rate.fillWhole + 2, LONGEST_SPAN) }),
  );
}
