import { test } from '@jest/globals';
import fc from 'fast-check';
import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
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

/**
 * A bucket that is both taken from and refunded to in a request to both stores, where it takes first: a window of a
 * second, or one of the main store's if that is refunded to in a step of its own.
 */
function reordered(items: readonly TakeItem[], countDeniedHits: boolean): boolean {
  const isMoved = ({ key, enforcement }: TakeItem): boolean =>
    enforcement !== 'candidate' && 'st'.includes(key) === countDeniedHits;
  const keys = (refund: boolean) =>
    items.filter((one) => one.refund === refund && isMoved(one)).map(({ key }) => key);
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
          if (reordered(items, countDeniedHits)) continue;
          expectEqual(await split.take(items, Infinity), one.take(items));
        }
        // Nothing is left behind of how requests are denied.
        expectAtMost(perSecond.size, 3);
        expectAtMost(main.size, 9);
        expectEqual(split.giveBackStats, { made: 0, failed: 0, skipped: 0 });
        for (const [key, rate] of [...BUCKETS, ...CANDIDATES]) {
          const look = [takeItem(key, rate, { hits: 0 })];
          expectEqual(await split.take(look, Infinity), one.take(look));
        }
      }),
      { numRuns: 1000 },
    );
  },
);

/** Windows of seconds whose last step, the second one of a request to both, comes too late, or fails. */
class Disturbed implements BucketStore {
  readonly inner: MemoryStore;
  /** What happens then. */
  disturb: (() => StorageError | undefined) | undefined;
  private steps = 0;

  constructor(inner: MemoryStore) {
    this.inner = inner;
  }

  next(disturb: () => StorageError | undefined): void {
    this.steps = 0;
    this.disturb = disturb;
  }

  take(items: readonly TakeItem[]): TakeResult {
    return (this.steps++ === 1 ? this.disturb?.() : undefined) ?? this.inner.take(items);
  }

  async close(): Promise<void> {}
}

const disturbed = fc.record({
  wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700_000 })),
  items: fc.array(item, { minLength: 2, maxLength: 6 }),
  /** Hits of others on `s` and `t` before the last step; undefined: it fails. */
  rival: fc.option(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 5 })), {
    nil: undefined,
  }),
});

test('a last step that is too late, or fails, leaves the main store as one store would be', async () => {
  // No charge meets the bound of this debt: one that does is given back a token less.
  const deeper = tokenBucketRate(3, 1, 1_000_000, 1000);
  const [s, t] = BUCKETS.map(([key, rate]) => ({ key, rate }));
  let gaveBack = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(disturbed, { minLength: 1, maxLength: 25 }), async (requests) => {
      const clock = new FakeClock();
      const store = () => new MemoryStore({ ...MEMORY, clock, countDeniedHits: false });
      const [one, main, perSecond] = [store(), store(), new Disturbed(store())];
      const split = new SplitStore({
        perSecond,
        main,
        countDeniedHits: false,
        timeoutMicros: 1_000_000,
        monotonicMicros: () => clock.monotonicMicros(),
      });
      for (const { wait, items: drawn, rival } of requests) {
        clock.advance(wait);
        const items = drawn.map((asked) => (asked.key === 'd' ? { ...asked, rate: deeper } : asked));
        if (reordered(items, false)) continue;
        let isDisturbed = false;
        const others = [s, t].map((bucket, i) =>
          takeItem(bucket!.key, bucket!.rate, { hits: rival?.[i] ?? 0, enforcement: 'observe' }),
        );
        perSecond.next(() => {
          isDisturbed = true;
          if (rival === undefined) return new StorageError('timeout', 'late');
          perSecond.inner.take(others);
          return undefined;
        });
        const told = await split.take(items, Infinity);
        if (isDisturbed) one.take(others);
        if (told instanceof StorageError) {
          // Of a request that fails, candidates alone stay.
          const candidates = items.filter(({ enforcement }) => enforcement === 'candidate');
          if (candidates.length > 0) one.take(candidates);
        } else {
          one.take(items).forEach(({ waitMicros, ...truth }, i) => {
            const { waitMicros: wait, ...found } = told[i] as TakeOutcome;
            expectEqual(found, truth);
            expectAtMost(Math.abs(wait - waitMicros), 1);
          });
        }
        for (const [key, rate] of [...BUCKETS, ...CANDIDATES]) {
          const look = [takeItem(key, key === 'd' ? deeper : rate, { hits: 0 })];
          perSecond.disturb = undefined;
          expectEqual(await split.take(look, Infinity), one.take(look));
        }
      }
      gaveBack += split.giveBackStats.made;
      expectEqual(split.giveBackStats, { ...split.giveBackStats, failed: 0, skipped: 0 });
    }),
    { numRuns: 1000 },
  );
  expectAtMost(100, gaveBack);
});
