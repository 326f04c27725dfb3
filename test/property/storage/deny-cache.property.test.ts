import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { DenyCache } from '../../../src/storage/deny-cache.js';
import { expectAtLeast, expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { arbitraryHits, arbitraryRate } from '../../support/limiter/arbitrary-takes.js';
import { RemoteStore } from '../../support/limiter/remote-store.js';
import { takeItem } from '../../support/limiter/take-items.js';

const MAX_AGE = 1_000_000;
/** The last key is that of a limit that is not enforced. */
const KEYS = ['a', 'b', 'c'];

interface Step {
  readonly who: 'us' | 'others';
  readonly wait: number;
  readonly asks: readonly { key: string; hits: number; refund: boolean; observe: boolean }[];
}

function arbitrarySteps(rate: TokenBucketRate): fc.Arbitrary<Step[]> {
  const token = Math.max(1, Math.min(Math.ceil(rate.refillNumerator / rate.refillDenominator), MAX_AGE));
  const ask = fc.record({
    key: fc.constantFrom(...KEYS),
    hits: fc.oneof({ arbitrary: fc.integer({ min: 0, max: 3 }), weight: 3 }, arbitraryHits(rate)),
    refund: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
    observe: fc.boolean(),
  });
  return fc.array(
    fc.record({
      who: fc.constantFrom('us' as const, 'us' as const, 'us' as const, 'others' as const),
      wait: fc.oneof(
        { arbitrary: fc.integer({ min: 0, max: 5 }), weight: 4 },
        { arbitrary: fc.integer({ min: 0, max: 2 * token }), weight: 2 },
        { arbitrary: fc.integer({ min: 0, max: 2 * MAX_AGE }), weight: 1 },
      ),
      asks: fc.array(ask, { minLength: 1, maxLength: 3 }),
    }),
    { minLength: 5, maxLength: 60 },
  );
}

/** Rates with long denials, and any others. */
const rates = fc.oneof(
  fc.constantFrom(
    tokenBucketRate(5, 1, 1_000_000),
    tokenBucketRate(100, 10, 1_000_000),
    tokenBucketRate(10, 3, 1_000_000),
    tokenBucketRate(100, 7, 60_000_000),
  ),
  arbitraryRate(),
);

const scenario = rates.chain((rate) =>
  fc.record({
    rate: fc.constant(rate),
    offset: fc.integer({ min: 0, max: 1_000_000_000_000 }),
    latency: fc.constantFrom(0, 0, 1, 200, 30_000),
    steps: arbitrarySteps(rate),
  }),
);

test('never denies requests that the store would allow, except after refunds elsewhere', async () => {
  let repeated = 0;
  await fc.assert(
    fc.asyncProperty(scenario, async ({ rate, offset, latency, steps }) => {
      const local = new FakeClock();
      const remote = new RemoteStore(local, offset, latency);
      const cache = new DenyCache({
        store: remote,
        maxAgeMicros: MAX_AGE,
        maxEntries: 10,
        monotonicMicros: () => local.monotonicMicros(),
      });
      // The buckets are empty at first. Otherwise, most requests would be allowed.
      for (const key of KEYS) remote.buckets.take([takeItem(key, rate, { hits: rate.maxTokens })]);
      const refundedAt = new Map<string, number>();
      let changedByOthers = false;
      for (const { who, wait, asks } of steps) {
        local.advance(wait);
        const takes = asks.map(({ key, hits, refund, observe }) =>
          takeItem(key, rate, {
            hits,
            refund,
            enforcement: key === 'c' ? 'observe' : observe ? 'spill' : 'enforce',
          }),
        );
        if (who === 'others') {
          remote.buckets.take(takes);
          changedByOthers = true;
          for (const { key, refund } of takes) if (refund) refundedAt.set(key, local.monotonic);
          continue;
        }
        const found = cache.take(takes, Infinity);
        if (found instanceof Promise) {
          await found;
          continue;
        }
        repeated++;
        const foreign = takes.some(
          ({ key }) => local.monotonic - (refundedAt.get(key) ?? -Infinity) < MAX_AGE,
        );
        // All items are limited, so the request does not change the store.
        if (foreign) continue;
        const outcomes = found as readonly TakeOutcome[];
        remote.buckets.take(takes).forEach((truth, i) => {
          const told = outcomes[i]!;
          expectEqual([truth.overLimit, told.overLimit], [true, true]);
          expectAtMost(told.waitMicros, truth.waitMicros);
          expectAtLeast(told.remaining, truth.remaining);
          if (changedByOthers) return;
          // The cached state is older by the duration of the reply, and less exact by the rounding error.
          expectAtLeast(told.waitMicros, truth.waitMicros - 2 * latency - 1);
          if (latency === 0 && rate.refillDenominator === 1)
            expectEqual(told, { ...truth, undoAtMicros: undefined, cached: true });
        });
      }
    }),
    runs(1500),
  );
  expect(repeated).toBeGreaterThan(160);
});
