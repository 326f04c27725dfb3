import fc from 'fast-check';
import type { Take } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { takeItem } from './take-items.js';

/** Few buckets with low capacities, so that every combination of allowed and denied items occurs. */
export const BUCKETS: readonly (readonly [key: string, rate: Rate])[] = [
  ['s', windowRate('second', 2)],
  ['t', windowRate('second', 5)],
  ['m', windowRate('minute', 4)],
  ['b', tokenBucketRate(3, 1, 1_000_000)],
  ['c', tokenBucketRate(5, 3, 1_000_000)],
  ['l', windowRate('second', 3, { countsOnlyAllowed: true })],
  ['o', windowRate('second', 3, { maxDebt: 2 })],
  ['f', windowRate('second', 4, { multiplier: 2 })],
  ['d', tokenBucketRate(3, 1, 1_000_000, 2)],
];

/** Generates an item on one of {@link BUCKETS}. */
const someItem: fc.Arbitrary<Take> = fc
  .record({
    bucket: fc.constantFrom(...BUCKETS),
    hits: fc.integer({ min: 0, max: 3 }),
    refund: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
    enforcement: fc.constantFrom('enforce' as const, 'observe' as const, 'quota' as const, 'quota' as const),
  })
  .map(({ bucket: [key, rate], ...options }) => takeItem(key, rate, options));

/** Generates a request for some of the buckets, with the microseconds since the previous request. */
export const someRequest = fc.record({
  wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700_000 })),
  items: fc.array(someItem, { minLength: 1, maxLength: 5 }),
});

/**
 * Rate of the bucket `d` with a debt bound that no charge reaches. A charge that reaches the bound is given back one
 * token short.
 */
export const DEEP_DEBT_RATE = tokenBucketRate(3, 1, 1_000_000, 1000);

/** Returns the items with {@link DEEP_DEBT_RATE} as the rate of `d`. */
export function withDeepDebt(takes: readonly Take[]): Take[] {
  return takes.map((take) => (take.key === 'd' ? { ...take, rate: DEEP_DEBT_RATE } : take));
}
