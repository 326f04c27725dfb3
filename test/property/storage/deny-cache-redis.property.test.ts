import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { DenyCache } from '../../../src/storage/deny-cache.js';
import { expectAtLeast, expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { arbitraryRate } from '../../support/limiter/arbitrary-takes.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../../support/limiter/test-stores.js';

const MAX_AGE = 1_000_000;
/** Number of sequences so far, each of which has its own keys. */
let run = 0;

/** The take of one request from one bucket. */
interface Ask {
  readonly bucket: number;
  /** A fraction of the capacity, or a small number. */
  readonly hits: number | { readonly share: number };
  readonly refund: boolean;
  readonly enforcement: Take['enforcement'];
}

const ask = fc.record({
  bucket: fc.integer({ min: 0, max: 4 }),
  hits: fc.oneof(
    { arbitrary: fc.integer({ min: 0, max: 3 }), weight: 4 },
    { arbitrary: fc.record({ share: fc.double({ min: 0, max: 1.5, noNaN: true }) }), weight: 1 },
    { arbitrary: fc.constant(Number.MAX_SAFE_INTEGER), weight: 1 },
  ),
  refund: fc.integer({ min: 0, max: 29 }).map((n) => n === 0),
  enforcement: fc.constantFrom(
    'enforce' as const,
    'enforce' as const,
    'observe' as const,
    'quota' as const,
    'spill' as const,
  ),
});

const turns = fc.array(
  fc.record({
    wait: fc.oneof(
      { arbitrary: fc.integer({ min: 0, max: 5 }), weight: 3 },
      { arbitrary: fc.integer({ min: 0, max: 400_000 }), weight: 2 },
      { arbitrary: fc.integer({ min: 0, max: 2 * MAX_AGE }), weight: 1 },
    ),
    requests: fc.array(fc.array(ask, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 5 }),
  }),
  { minLength: 3, maxLength: 25 },
);

const tokenRate = fc.oneof(
  fc.constantFrom(
    tokenBucketRate(5, 1, 1_000_000),
    tokenBucketRate(10, 3, 1_000_000),
    tokenBucketRate(100, 7, 60_000_000),
    tokenBucketRate(3, 3, 1_000_000),
  ),
  arbitraryRate(),
);

const scenario = fc.record({
  rates: fc.tuple(
    tokenRate,
    tokenRate,
    tokenRate,
    tokenRate,
    fc.constantFrom(windowRate('second', 3), windowRate('minute', 7)),
  ),
  maxEntries: fc.constantFrom(1, 3, 1000),
  turns,
});

function itemOf({ bucket, hits, refund, enforcement }: Ask, rates: readonly Rate[], prefix: string): Take {
  const rate = rates[bucket] as Rate;
  const most = rate.reportedLimit;
  const count = typeof hits === 'number' ? hits : Math.floor(most * hits.share);
  return takeItem(`${prefix}:${bucket}`, rate, { hits: count, refund, enforcement });
}

describe('two runs of the same requests on one Redis, one of them with a deny cache', () => {
  const bench = new RedisBench('redis-server');
  beforeAll(() => bench.start());

  test.each([true, false])(
    'have the same decisions (windows count denied hits: %s)',
    async (countDeniedHits) => {
      const redis = await bench.open({ countDeniedHits });
      let answers = 0;
      await fc.assert(
        fc.asyncProperty(scenario, async ({ rates, maxEntries, turns: steps }) => {
          run++;
          const cache = new DenyCache({
            store: redis,
            maxAgeMicros: MAX_AGE,
            // If windows count denied hits, they miss the hits of cached denials.
            windows: !countDeniedHits,
            maxEntries,
            monotonicMicros: () => bench.clock.monotonicMicros(),
          });
          for (const prefix of ['cached', 'asked']) {
            for (const [i, rate] of rates.slice(0, 4).entries()) {
              if (rate.kind !== 'token_bucket') continue;
              await takeFrom(redis, takeItem(`${run}${prefix}:${i}`, rate, { hits: rate.maxTokens }));
            }
          }
          for (const { wait, requests } of steps) {
            bench.clock.advance(wait);
            const cached = requests.map((asks) =>
              takeFrom(cache, ...asks.map((one) => itemOf(one, rates, `${run}cached`))),
            );
            const asked = requests.map((asks) =>
              takeFrom(redis, ...asks.map((one) => itemOf(one, rates, `${run}asked`))),
            );
            const told = await Promise.all(cached);
            const truths = await Promise.all(asked);
            truths.forEach((truth, r) => {
              truth.forEach((one, i) => {
                const other = told[r]?.[i] as TakeOutcome;
                expectSame(other.overLimit, one.overLimit);
                expectAtMost(other.waitMicros, one.waitMicros);
                expectAtLeast(other.remaining, one.remaining);
                // A cached denial does not include the takes of concurrent requests.
                if (requests.length > 1) return;
                const rate = rates[requests[r]?.[i]?.bucket as number] as Rate;
                // A cached denial does not contain the start of a window.
                const { undoAtMicros: _, ...known } = one;
                if (!one.overLimit || rate.kind !== 'token_bucket' || rate.refillDenominator === 1)
                  expectEqual(other, { ...(other.cached ? known : one), cached: other.cached });
                // A cached denial does not contain fractions of a microsecond.
                expectAtLeast(other.waitMicros, one.waitMicros - 1);
              });
            });
          }
          answers += cache.answers;
        }),
        runs(200),
      );
      expect(answers).toBeGreaterThan(50);
    },
  );
});
