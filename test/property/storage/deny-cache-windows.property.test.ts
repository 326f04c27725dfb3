import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { DenyCache } from '../../../src/storage/deny-cache.js';
import { expectAtLeast, expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { RemoteStore } from '../../support/limiter/remote-store.js';
import { takeItem } from '../../support/limiter/take-items.js';

/** The kind of window of each key. */
const KINDS = { v: {}, w: { countsOnlyAllowed: true, multiplier: 2 }, o: { maxDebt: 1 }, c: {} } as const;

const ask = fc.record({
  /** The last key is that of a limit that is not enforced. */
  key: fc.constantFrom('v', 'v', 'w', 'o', 'c'),
  unit: fc.constantFrom('second' as const, 'second' as const, 'minute' as const),
  limit: fc.constantFrom(0, 1, 3, 5),
  hits: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constant(Number.MAX_SAFE_INTEGER)),
  refund: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  observe: fc.boolean(),
});

const scenario = fc.record({
  offset: fc.integer({ min: 0, max: 1_000_000_000_000 }),
  latency: fc.constantFrom(0, 0, 1, 200, 30_000),
  maxEntries: fc.constantFrom(1, 2, 1000),
  maxBytes: fc.constantFrom(0, 400, 1e6),
  steps: fc.array(
    fc.record({
      who: fc.constantFrom('us' as const, 'us' as const, 'us' as const, 'others' as const),
      wait: fc.oneof(
        { arbitrary: fc.integer({ min: 0, max: 5 }), weight: 4 },
        { arbitrary: fc.integer({ min: 0, max: 1_000_000 }), weight: 2 },
      ),
      asks: fc.array(ask, { minLength: 1, maxLength: 2 }),
    }),
    { minLength: 5, maxLength: 60 },
  ),
});

test.each([true, false])(
  'denies no window that the store would allow (windows count denied hits: %s)',
  async (countDeniedHits) => {
    let repeated = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async ({ offset, latency, maxEntries, maxBytes, steps }) => {
        const local = new FakeClock();
        const remote = new RemoteStore(local, offset, latency, countDeniedHits);
        const cache = new DenyCache({
          store: remote,
          maxAgeMicros: 0,
          windows: true,
          maxEntries,
          maxBytes,
          monotonicMicros: () => local.monotonicMicros(),
        });
        for (const { who, wait, asks } of steps) {
          local.advance(wait);
          const takes = asks.map(({ key, unit, limit, hits, refund, observe }) =>
            takeItem(`${key}${unit}`, windowRate(unit, key === 'o' ? limit + 1 : limit, KINDS[key]), {
              hits,
              // Refunds of other processes take effect when the window ends.
              refund: refund && who === 'us',
              enforcement: key === 'c' ? 'observe' : observe ? 'spill' : 'enforce',
            }),
          );
          if (who === 'others') {
            remote.buckets.take(takes);
            continue;
          }
          const found = cache.take(takes, Infinity);
          if (found instanceof Promise) {
            await found;
            continue;
          }
          repeated++;
          remote.buckets.take(takes).forEach((truth, i) => {
            const told = (found as readonly TakeOutcome[])[i]!;
            expectEqual([truth.overLimit, told.overLimit, told.cached], [true, true, true]);
            // Only windows of a list report the remaining hits, and other processes may have taken hits since.
            if (takes[i]?.key.startsWith('w') !== true) expectSame(told.remaining, 0);
            expectAtLeast(told.remaining, truth.remaining);
            expectAtMost(told.used, truth.used);
            expectAtMost(told.waitMicros, truth.waitMicros);
            expectAtLeast(told.waitMicros, truth.waitMicros - 2 * latency);
          });
        }
      }),
      runs(1000),
    );
    // The cache must have repeated enough denials.
    expect(repeated).toBeGreaterThan(65);
  },
);
