import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { expectAtMost } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { RedisBench, takeFrom } from '../../support/limiter/test-stores.js';
import type { SingleRedisStore } from '../../support/redis/single-stores.js';

/*
 * Callers that supply the time to the script (REDIS_CLOCK=caller), with clocks that differ. Together they get at most
 * the capacity of a bucket, plus what fills in the elapsed time and in the difference between their clocks. From a
 * window, they get at most its limit, once for each window that any of their clocks has seen.
 */

// Starting Redis may be slow on a busy machine.
jest.setTimeout(60_000);

const { second, minute } = UNIT_MICROS;
const RATES: readonly TokenBucketRate[] = [
  tokenBucketRate(1, 1, second),
  tokenBucketRate(10, 10, second),
  tokenBucketRate(3, 7, second),
  tokenBucketRate(1000, 1000, second),
  tokenBucketRate(50, 1000, second),
  tokenBucketRate(10, 3, minute),
];
/** Maximum difference between the clocks of callers, in microseconds; MAX_STEP in take.lua. */
const MAX_SKEW = second;

/** Clocks of callers, in microseconds ahead of the slowest clock. */
const skews = fc.array(fc.integer({ min: 0, max: MAX_SKEW }), { minLength: 2, maxLength: 3 });
const step = fc.record({
  caller: fc.nat(),
  /** Wait before the step, in microseconds. */
  wait: fc.oneof(
    { arbitrary: fc.constant(0), weight: 4 },
    fc.integer({ min: 0, max: 300_000 }),
    fc.integer({ min: 0, max: 3 * second }),
  ),
  hits: fc.integer({ min: 1, max: 4 }),
  /** Whether the request has an item for another bucket, which makes it a group for the script. */
  grouped: fc.boolean(),
});
const steps = fc.array(step, { minLength: 10, maxLength: 80 });

describe('callers with different clocks', () => {
  const bench = new RedisBench('redis-server', 'caller');
  const stores: SingleRedisStore[] = [];
  let ahead: readonly number[] = [];
  let run = 0;

  beforeAll(async () => {
    await bench.start();
    for (let i = 0; i < 3; i++) {
      stores.push(await bench.openWith({ clock: () => bench.clock.wallMicros() + (ahead[i] ?? 0) }));
    }
  });
  afterAll(() => bench.stop());

  /** Runs the steps on one bucket. Returns the allowed hits. */
  async function allowedHits(
    of: Parameters<typeof takeItem>[1],
    clocks: readonly number[],
    all: readonly (typeof steps extends fc.Arbitrary<(infer Step)[]> ? Step : never)[],
  ): Promise<number> {
    ahead = clocks;
    // Starts later than any of the previous clocks.
    bench.clock.advance(2 * MAX_SKEW);
    const key = `skewed${++run}`;
    let sum = 0;
    for (const { caller, wait, hits, grouped } of all) {
      bench.clock.advance(wait);
      const store = stores[caller % clocks.length] as SingleRedisStore;
      const item = takeItem(key, of, { hits });
      const otherItems = grouped ? [takeItem(`${key}other`, OTHER_RATE, { hits: 0 })] : [];
      const [outcome] = await takeFrom(store, item, ...otherItems);
      if (outcome?.limited === false) sum += hits;
    }
    return sum;
  }
  const OTHER_RATE = tokenBucketRate(10, 10, second);
  const passing = (all: readonly { readonly wait: number }[]): number =>
    all.slice(1).reduce((sum, { wait }) => sum + wait, 0);

  test('get at most the capacity of a bucket plus rate × (elapsed + skew), in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...RATES), skews, steps, async (rate, clocks, all) => {
        const skew = Math.max(...clocks) - Math.min(...clocks);
        const filled = ((passing(all) + skew) * rate.q) / rate.p;
        expectAtMost(await allowedHits(rate, clocks, all), rate.maxTokens + filled);
      }),
      runs(300),
    );
  });

  test('get at most the limit of a window, once for each window that any of them saw', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(second, minute), skews, steps, async (length, clocks, all) => {
        const rate = windowRate(length === second ? 'second' : 'minute', 10);
        const began = bench.clock.wallMicros() + 2 * MAX_SKEW + (all[0]?.wait ?? 0);
        const windowOf = (time: number): number => Math.floor(time / length);
        const first = windowOf(began + Math.min(...clocks));
        const last = windowOf(began + passing(all) + Math.max(...clocks));
        expectAtMost(await allowedHits(rate, clocks, all), 10 * (last - first + 1));
      }),
      runs(300),
    );
  });

  test.each([false, true])('use the window of the other clock (in a group: %s)', async (grouped) => {
    ahead = [0, MAX_SKEW / 2];
    bench.clock.advance(2 * MAX_SKEW);
    const toNext = minute - (bench.clock.wallMicros() % minute);
    bench.clock.advance(toNext + minute - MAX_SKEW / 4);
    const [slow, fast] = stores as [SingleRedisStore, SingleRedisStore];
    const key = `window${grouped}`;
    await takeFrom(fast, takeItem(key, windowRate('minute', 10), { hits: 10 }));
    const otherItems = grouped ? [takeItem(`${key}other`, OTHER_RATE, { hits: 0 })] : [];
    const [outcome] = await takeFrom(slow, takeItem(key, windowRate('minute', 10)), ...otherItems);
    // The window that the fast clock has started lasts a whole minute.
    expect(outcome).toMatchObject({ limited: true, remaining: 0, waitMicros: minute });
  });
});
