import { test } from '@jest/globals';
import fc from 'fast-check';
import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { ShardedStore } from '../../../src/storage/sharded/sharded-store.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import {
  BUCKETS,
  DEEP_DEBT_RATE,
  someItem,
  someRequest,
  withDeepDebt,
} from '../../support/limiter/small-buckets.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { singleShardMap } from '../../support/sharded/single-shard-map.js';

/**
 * Returns whether a request to both stores takes from and refunds the same bucket, with the take first. The bucket is a
 * window of a second, or one of the main store if its refund is a separate step.
 */
function reordered(items: readonly TakeItem[], countDeniedHits: boolean): boolean {
  const isMoved = ({ key }: TakeItem): boolean => 'st'.includes(key) === countDeniedHits;
  const keys = (refund: boolean) =>
    items.filter((one) => one.refund === refund && isMoved(one)).map(({ key }) => key);
  return keys(true).some((key) => keys(false).includes(key));
}

test.each([true, false])(
  'two stores decide like one (windows count denied hits: %s)',
  async (countDeniedHits) => {
    await fc.assert(
      fc.asyncProperty(fc.array(someRequest, { minLength: 1, maxLength: 25 }), async (requests) => {
        const clock = new FakeClock();
        const one = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        const perSecond = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        const main = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        const split = new ShardedStore({
          perSecond: singleShardMap(perSecond),
          main: singleShardMap(main),
          countDeniedHits,
          timeoutMicros: 1_000_000,
          monotonicMicros: () => clock.monotonicMicros(),
        });
        for (const { wait, items } of requests) {
          clock.advance(wait);
          if (reordered(items, countDeniedHits)) continue;
          expectEqual(await split.take(items, Infinity), one.take(items));
        }
        // The denied request leaves no state.
        expectAtMost(perSecond.size, 2);
        expectAtMost(main.size, 7);
        expectEqual(split.giveBackStats, { made: 0, failed: 0, skipped: 0 });
        for (const [key, rate] of BUCKETS) {
          const look = [takeItem(key, rate, { hits: 0 })];
          expectEqual(await split.take(look, Infinity), one.take(look));
        }
      }),
      runs(1000),
    );
  },
);

/** A store for windows of one second. Its last step, the second step of a request to both stores, is late or fails. */
class Disturbed implements BucketStore {
  readonly inner: MemoryStore;
  /** An event before that step. */
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
  items: fc.array(someItem, { minLength: 2, maxLength: 6 }),
  /** Hits of other requests on `s` and `t` before the last step; undefined if that step fails. */
  otherHits: fc.option(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 5 })), {
    nil: undefined,
  }),
});

test('a last step that is late or fails leaves the main store in the state of a single store', async () => {
  const [s, t] = BUCKETS.map(([key, rate]) => ({ key, rate }));
  let gaveBack = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(disturbed, { minLength: 1, maxLength: 25 }), async (requests) => {
      const clock = new FakeClock();
      const store = () => new MemoryStore({ ...MEMORY, clock, countDeniedHits: false });
      const [one, main, perSecond] = [store(), store(), new Disturbed(store())];
      const split = new ShardedStore({
        perSecond: singleShardMap(perSecond),
        main: singleShardMap(main),
        countDeniedHits: false,
        timeoutMicros: 1_000_000,
        monotonicMicros: () => clock.monotonicMicros(),
      });
      for (const { wait, items: drawn, otherHits } of requests) {
        clock.advance(wait);
        const items = withDeepDebt(drawn);
        if (reordered(items, false)) continue;
        let isDisturbed = false;
        const others = [s, t].map((bucket, i) =>
          takeItem(bucket!.key, bucket!.rate, { hits: otherHits?.[i] ?? 0, enforcement: 'observe' }),
        );
        perSecond.next(() => {
          isDisturbed = true;
          if (otherHits === undefined) return new StorageError('timeout', 'late');
          perSecond.inner.take(others);
          return undefined;
        });
        const told = await split.take(items, Infinity);
        if (isDisturbed) one.take(others);
        // A failed request leaves nothing.
        if (!(told instanceof StorageError)) {
          one.take(items).forEach(({ waitMicros, undoMark: _, ...truth }, i) => {
            const { waitMicros: wait, undoMark: __, ...found } = told[i] as TakeOutcome;
            expectEqual(found, truth);
            expectAtMost(Math.abs(wait - waitMicros), 1);
          });
        }
        for (const [key, rate] of BUCKETS) {
          const look = [takeItem(key, key === 'd' ? DEEP_DEBT_RATE : rate, { hits: 0 })];
          perSecond.disturb = undefined;
          expectEqual(await split.take(look, Infinity), one.take(look));
        }
      }
      gaveBack += split.giveBackStats.made;
      expectEqual(split.giveBackStats, { ...split.giveBackStats, failed: 0, skipped: 0 });
    }),
    runs(1000),
  );
  expectAtMost(100, gaveBack);
});
