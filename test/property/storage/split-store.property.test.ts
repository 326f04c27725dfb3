import { test } from '@jest/globals';
import fc from 'fast-check';
import type { TakeItem } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { SplitStore } from '../../../src/storage/split-store.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';

/** Few buckets with little room, so that every combination of what fits comes up. */
const BUCKETS: readonly (readonly [key: string, rate: Rate])[] = [
  ['s', windowRate('second', 2)],
  ['t', windowRate('second', 5)],
  ['m', windowRate('minute', 4)],
  ['b', tokenBucketRate(3, 1, 1_000_000)],
  ['c', tokenBucketRate(5, 3, 1_000_000)],
  ['l', windowRate('second', 3, { allOrNothing: true })],
  ['o', windowRate('second', 3, { maxDebt: 2 })],
  ['f', windowRate('second', 4, { multiplier: 2 })],
  ['d', tokenBucketRate(3, 1, 1_000_000, 2)],
];

/** Buckets of candidates, which no other item names. */
const CANDIDATES: typeof BUCKETS = [
  ['s~c', windowRate('second', 3)],
  ['m~c', windowRate('minute', 3)],
  ['b~c', tokenBucketRate(2, 1, 1_000_000)],
];

const live: fc.Arbitrary<TakeItem> = fc
  .record({
    bucket: fc.constantFrom(...BUCKETS),
    hits: fc.integer({ min: 0, max: 3 }),
    refund: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
    enforcement: fc.constantFrom('enforce' as const, 'observe' as const, 'quota' as const, 'quota' as const),
  })
  .map(({ bucket: [key, rate], ...options }) => takeItem(key, rate, options));

const candidate: fc.Arbitrary<TakeItem> = fc
  .record({
    bucket: fc.constantFrom(...CANDIDATES),
    hits: fc.integer({ min: 0, max: 3 }),
    refund: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  })
  .map(({ bucket: [key, rate], ...options }) =>
    takeItem(key, rate, { ...options, enforcement: 'candidate' }),
  );

const item = fc.oneof({ weight: 3, arbitrary: live }, { weight: 1, arbitrary: candidate });

const request = fc.record({
  wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700_000 })),
  items: fc.array(item, { minLength: 1, maxLength: 5 }),
});

/** A window of a second that is both taken from and refunded to in a request to both stores: there it takes first. */
function reordered(items: readonly TakeItem[]): boolean {
  const keys = (refund: boolean) =>
    items.filter((one) => one.refund === refund && 'st'.includes(one.key)).map(({ key }) => key);
  return keys(true).some((key) => keys(false).includes(key));
}

test.each([true, false])(
  'two stores decide as one (windows count denied hits: %s)',
  async (countDeniedHits) => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 25 }), async (requests) => {
        const clock = new FakeClock();
        const one = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        const perSecond = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        const main = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        const split = new SplitStore({
          perSecond,
          main,
          countDeniedHits,
          timeoutMicros: 1_000_000,
          monotonicMicros: () => clock.monotonicMicros(),
        });
        for (const { wait, items } of requests) {
          clock.advance(wait);
          if (countDeniedHits && reordered(items)) continue;
          expectEqual(await split.take(items, Infinity), one.take(items));
        }
        // Nothing is left behind of how requests are denied.
        expectAtMost(perSecond.size, 3);
        expectAtMost(main.size, 9);
        for (const [key, rate] of [...BUCKETS, ...CANDIDATES]) {
          const look = [takeItem(key, rate, { hits: 0 })];
          expectEqual(await split.take(look, Infinity), one.take(look));
        }
      }),
      { numRuns: 1000 },
    );
  },
);
