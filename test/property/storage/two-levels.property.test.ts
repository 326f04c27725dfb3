import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { BucketStore, TakeItem, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../../support/limiter/test-stores.js';

/*
 * Two servers share a Redis, but their policies differ in the depth of a token bucket. This happens while a changed
 * burst, unit or debt reaches one server after another. The smaller bucket cuts off the part beyond its depth. The
 * larger bucket must not find new tokens because of that.
 */

// Starting Redis may be slow on a busy machine.
jest.setTimeout(60_000);

const { second, minute, hour } = UNIT_MICROS;
/** Rates by time to fill, shortest first. All times are whole microseconds. */
const WHOLE = [
  tokenBucketRate(10, 10, second),
  tokenBucketRate(5, 1, second),
  tokenBucketRate(10, 10, minute),
  tokenBucketRate(10, 10, minute, 5),
  tokenBucketRate(13, 10, minute),
  tokenBucketRate(10, 10, hour),
];
/** Some have fractions of a microsecond, each with its own denominator. */
const ANY = [
  ...WHOLE,
  tokenBucketRate(3, 3, second),
  tokenBucketRate(7, 7, minute),
  tokenBucketRate(100, 7, minute),
];
/** Number of buckets so far. */
let run = 0;

/** Two different depths, the smaller one first. */
function pairOf(
  rates: readonly TokenBucketRate[],
): fc.Arbitrary<readonly [TokenBucketRate, TokenBucketRate]> {
  return fc
    .tuple(fc.constantFrom(...rates), fc.constantFrom(...rates))
    .filter(([one, other]) => one.debtWhole < other.debtWhole);
}

const step = fc.record({
  /** In thousandths of the smaller bucket's time to fill. */
  wait: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.integer({ min: 0, max: 1_200 })),
  hits: fc.oneof({ arbitrary: fc.constant(1), weight: 5 }, fc.integer({ min: 0, max: 14 })),
  refund: fc.oneof({ arbitrary: fc.constant(false), weight: 9 }, fc.constant(true)),
  larger: fc.boolean(),
});
const steps = fc.array(step, { minLength: 5, maxLength: 60 });

describe('two servers with different depths of a bucket', () => {
  const bench = new RedisBench('redis-server');
  let servers: readonly [BucketStore, BucketStore];
  beforeAll(async () => {
    await bench.start();
    servers = [await bench.open(), await bench.open()];
  });
  afterAll(() => bench.stop());

  async function ask(
    larger: boolean,
    key: string,
    rate: TokenBucketRate,
    hits: number,
    refund = false,
  ): Promise<TakeOutcome> {
    const [outcome] = await takeFrom(servers[larger ? 1 : 0], takeItem(key, rate, { hits, refund }));
    return outcome as TakeOutcome;
  }

  test('allow at most the sum of both limits and of both refills', async () => {
    await fc.assert(
      fc.asyncProperty(pairOf(ANY), steps, async ([small, large], calls) => {
        const key = `sum${run++}`;
        let elapsed = 0;
        const passed = [0, 0];
        const returned = [0, 0];
        for (const { wait, hits, refund, larger } of calls) {
          const pause = Math.floor((wait * small.fillWhole) / 1_000);
          bench.clock.advance(pause);
          elapsed += pause;
          const at = larger ? 1 : 0;
          const rate = larger ? large : small;
          // A charge is always allowed, because the usage already happened.
          const count = rate.maxDebt > 0 && hits > 1 ? 1 : hits;
          const outcome = await ask(larger, key, rate, count, refund);
          if (refund) returned[at] = (returned[at] as number) + count;
          else if (!outcome.limited) passed[at] = (passed[at] as number) + count;
        }
        // A refund fills the bucket for both rates, by the cost of a token in the refund's own rate.
        const given =
          ((returned[0] as number) * small.p) / small.q + ((returned[1] as number) * large.p) / large.q;
        [small, large].forEach((rate, i) => {
          const most = rate.maxTokens + ((elapsed + given) * rate.q) / rate.p;
          expectAtMost(passed[i], most);
        });
      }),
      runs(400),
    );
  });

  test('give back at most what they took, while only one take at a time can be undone', async () => {
    const undoing = fc.record({
      wait: fc.constantFrom(0, 0, 0, 100, 300, 600, 1_000, 2_000),
      hits: fc.constantFrom(1, 2, 5, 8, 10),
      larger: fc.boolean(),
      fate: fc.constantFrom('stays', 'is undone', 'undoes'),
    });
    let undone = 0;
    await fc.assert(
      fc.asyncProperty(
        pairOf(ANY),
        fc.array(undoing, { minLength: 5, maxLength: 60 }),
        async ([small, large], calls) => {
          const key = `undo${run++}`;
          /** When a bucket that counts the allowed hits is full, for each limit, over any period. */
          const fullAt = new Map([small, large].map((rate) => [rate, 0]));
          let refund: TakeItem | undefined;
          for (const { wait, hits, larger, fate } of calls) {
            bench.clock.advance(Math.floor((wait * small.fillWhole) / 1_000));
            const now = bench.clock.monotonic;
            const rate = larger ? large : small;
            const count = rate.maxDebt > 0 && hits > 1 ? 1 : hits;
            if (refund !== undefined && fate === 'undoes') {
              await takeFrom(servers[refund.rate === large ? 1 : 0], refund);
              refund = undefined;
              undone++;
            }
            const { limited, undoMark } = await ask(larger, key, rate, count);
            if (limited) continue;
            if (refund === undefined && fate === 'is undone' && undoMark !== undefined) {
              refund = { ...takeItem(key, rate, { hits: count, refund: true }), undoMark };
            } else {
              const full = Math.max(fullAt.get(rate) as number, now) + (count * rate.p) / rate.q;
              fullAt.set(rate, full);
              // Sums of fractions are rounded.
              expectAtMost(full, now + rate.fillWhole + 1 + calls.length);
            }
          }
        },
      ),
      runs(400),
    );
    expectAtMost(100, undone);
  });

  test('give back no tokens once takes from the smaller bucket have used up the part that it cut off', async () => {
    const key = `reached${run++}`;
    const small = tokenBucketRate(10, 10, second);
    const large = tokenBucketRate(5, 1, second);
    const { undoMark } = await ask(true, key, large, 2);
    // The smaller bucket fills in 1 s. A peek at it cuts off the second that is beyond its depth.
    await ask(false, key, small, 0);
    bench.clock.advance(second);
    // From now on, both are full at the same time.
    expect(await ask(false, key, small, 10)).toMatchObject({ limited: false, remaining: 0 });
    const refund = takeItem(key, large, { hits: 2, refund: true });
    await takeFrom(servers[1], { ...refund, undoMark: undoMark as number });
    expect(await ask(false, key, small, 1)).toMatchObject({ limited: true });
    bench.clock.advance(second);
    // The key expires when the larger bucket would be full.
    const next = await ask(true, key, large, 2);
    await takeFrom(servers[1], { ...refund, undoMark: next.undoMark as number });
    expect(await ask(true, key, large, 0)).toMatchObject({ limited: false, remaining: 5 });
  });

  test.each([true, false])(
    'do not affect each other with calls that take no tokens (from the smaller bucket: %s)',
    async (smallLooks) => {
      await fc.assert(
        fc.asyncProperty(pairOf(WHOLE), steps, async ([small, large], calls) => {
          const key = `look${run++}`;
          const alone = new MemoryStore({ ...MEMORY, clock: bench.clock });
          const rate = smallLooks ? large : small;
          const other = smallLooks ? small : large;
          for (const { wait, hits, refund, larger } of calls) {
            bench.clock.advance(Math.floor((wait * small.fillWhole) / 1_000));
            if (larger) {
              await ask(!smallLooks, key, other, 0);
              // More hits than the capacity, so the take is denied.
              if (other.maxDebt === 0)
                expect(await ask(!smallLooks, key, other, 1_000)).toMatchObject({ limited: true });
            } else {
              const [expected] = alone.take([takeItem(key, rate, { hits, refund })]);
              expectEqual(await ask(smallLooks, key, rate, hits, refund), expected);
            }
          }
        }),
        runs(200),
      );
    },
  );

  test("do not keep each other's bucket empty because of an old take by a third server", async () => {
    const key = `third${run++}`;
    const tenSeconds = tokenBucketRate(10, 1, second);
    const tenAMinute = tokenBucketRate(10, 10, minute);
    await ask(true, key, tokenBucketRate(10, 10, hour), 10);
    const passed = [0, 0];
    const rates = [tenSeconds, tenAMinute];
    for (let call = 0; call < 200; call++) {
      bench.clock.advance(5 * second);
      for (const [i, rate] of rates.entries()) {
        if (!(await ask(i === 1, key, rate, 1)).limited) passed[i] = (passed[i] as number) + 1;
      }
    }
    // Within 1,000 s, during which the one-hour bucket stays empty.
    for (const count of passed) expect(count).toBeGreaterThan(50);
    expect(await ask(true, key, tokenBucketRate(10, 10, hour), 10)).toMatchObject({ limited: true });
  });

  test("do not slow the refill of each other's bucket", async () => {
    await fc.assert(
      fc.asyncProperty(pairOf(ANY), steps, async ([small, large], calls) => {
        const key = `fill${run++}`;
        for (const { wait, hits, refund, larger } of calls) {
          bench.clock.advance(Math.floor((wait * small.fillWhole) / 1_000));
          await ask(larger, key, larger ? large : small, hits, refund);
        }
        // Starts with the peek, the first call of a policy that all servers have now.
        await ask(false, key, small, 0);
        bench.clock.advance(small.debtWhole + 1);
        expect(await ask(false, key, small, 0)).toMatchObject({ limited: false, remaining: small.maxTokens });
      }),
      runs(200),
    );
  });
});
