/* Tests the settlement of the oldest hold of a bucket: the arithmetic of the script, and holds in one call. */

import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Take } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { MAX_FILL_MICROS } from '../../src/limiter/rate-algorithm.js';
import { type TokenBucketRate, tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { holdsKey, redisKey } from '../../src/storage/redis/redis-key.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { ClusterBench } from '../support/limiter/cluster-bench.js';
import { holdItem, oldestItem, settlementTake } from '../support/limiter/hold-items.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { memoryBench, redisBenches, takeFrom } from '../support/limiter/test-stores.js';

const MOST = 0xffff_ffff;

/** Returns random rates, many of them with a large numerator and denominator. */
function randomRates(count: number): TokenBucketRate[] {
  const random = seededRandom(31);
  const any = (most: number) => 1 + Math.floor(random() * most);
  const rates: TokenBucketRate[] = [];
  while (rates.length < count) {
    const maxTokens = any(2) === 1 ? MOST - any(1000) : any(100_000);
    const tokensPerFill = any(3) > 1 ? MOST - any(100_000) : any(100_000);
    const intervalMicros = 1000 + any(any(2) === 1 ? 1e6 : 1e14);
    if ((maxTokens / tokensPerFill) * intervalMicros > MAX_FILL_MICROS / 2) continue;
    rates.push(tokenBucketRate(maxTokens, tokensPerFill, intervalMicros, 0, Infinity));
  }
  return rates;
}

describe.each(redisBenches())('the oldest hold on $name', (bench) => {
  beforeAll(() => bench.start());
  afterEach(() => bench.reset());

  const setOf = (key: string) => redisKey({ key: holdsKey(key), hashTagLength: key.length });

  test('is settled exactly, whatever the cost of its hits', async () => {
    const store = await bench.open();
    const random = seededRandom(32);
    const upTo = (most: number) => Math.floor(random() * (most + 1));
    for (const [i, rate] of randomRates(200).entries()) {
      const key = `bucket ${i}`;
      const amount = Math.max(1, upTo(rate.maxTokens));
      const used = i % 2 === 0 ? Math.max(1, upTo(amount)) : Math.max(1, upTo(rate.maxTokens));
      await takeFrom(store, holdItem(key, rate, { hits: amount }));
      const [settled] = await takeFrom(store, oldestItem(takeItem(key, rate), used));
      expectEqual([settled?.hold, settled?.heldHits], ['settled', amount]);
      const product = BigInt(used) * BigInt(rate.refillNumerator);
      const q = BigInt(rate.refillDenominator);
      const fullAt = BigInt(bench.clock.wallMicros()) + product / q;
      expectEqual(await bench.redis.get(redisKey(takeItem(key, rate))), `t1:${fullAt}:${product % q}:${q}`);
    }
  });

  test('is settled in a call with other takes, in the order of the calls', async () => {
    const store = await bench.open();
    const memory = new MemoryStore({ ...MEMORY, clock: bench.clock });
    const random = seededRandom(7);
    const any = (count: number) => Math.floor(random() * count);
    const rates = {
      bucket: tokenBucketRate(1000, 300, 1_000_000, 200, Infinity),
      window: windowRate('day', 10_000, { maxDebt: 100, minChargeHits: Infinity }),
      calendar: windowRate('day', 10_000, { timeZone: 'Europe/Berlin', minChargeHits: Infinity }),
    };
    const names = Object.keys(rates) as (keyof typeof rates)[];
    const ids: Take[] = [];
    let settled = 0;
    for (let round = 0; round < 60; round++) {
      const requests = Array.from({ length: 10 }, (): Take => {
        const key = names[any(names.length)] as keyof typeof rates;
        if (any(2) === 0) return oldestItem(takeItem(key, rates[key]), 1 + any(120));
        return holdItem(key, rates[key], {
          hits: 1 + any(100),
          lifetimeMillis: any(2) === 0 ? 9000 : 30_000,
        });
      });
      const expected = requests.map((take) => memory.take([take]));
      const found = await Promise.all(requests.map((take) => takeFrom(store, take)));
      expectEqual(found, expected);
      settled += found.filter(([outcome]) => outcome?.hold === 'settled').length;
      requests.forEach((take, i) => {
        if (found[i]?.[0]?.hold === 'placed') ids.push(settlementTake(take, found[i]?.[0] ?? {}));
      });
      // A hold can still be settled by its id.
      const [own] = ids.splice(any(ids.length), 1);
      if (own !== undefined) expectEqual(await takeFrom(store, own), memory.take([own]));
      // Callers' clocks may differ by a second, so no hold expires between the two stores.
      bench.clock.advance(any(100_000));
    }
    expect(settled).toBeGreaterThan(100);
  });

  test('is not looked for among members that are shorter than a reservation', async () => {
    const store = await bench.open();
    const rate = tokenBucketRate(100, 10, 1_000_000, 0, Infinity);
    await bench.redis.zadd(setOf('a'), bench.clock.wallMicros() + 1e9, 'foreign');
    await takeFrom(store, holdItem('a', rate, { hits: 5 }));
    const end = () => takeFrom(store, oldestItem(takeItem('a', rate), 3));
    const both = [(await end())[0]?.hold, (await end())[0]?.hold];
    expect(both.sort()).toEqual(['settled', 'unknown']);
    expect(await bench.redis.zcount(setOf('a'), '0', '+inf')).toBe(0);
  });
});

describe.each([memoryBench(), ...redisBenches().slice(0, 1), new ClusterBench('redis-server')])(
  'lost ends on $name',
  (bench) => {
    beforeAll(() => bench.start());

    const LIMIT = 1_000_000_000;
    const ESTIMATE = 5000;
    const EXPIRY_MS = 20_000;
    const STARTS = 4000;
    const STARTS_PER_CALL = 4;
    // A year, so that no window ends.
    const YEAR = windowRate('year', LIMIT, { countsOnlyAllowed: true, minChargeHits: Infinity });

    test('cost their estimates, and nothing else, and no hold outlives its expiry', async () => {
      const store = await bench.open();
      const random = seededRandom(1);
      const end = (used: number) => takeFrom(store, oldestItem(takeItem('a', YEAR), used));
      const left = async () => (await takeFrom(store, takeItem('a', YEAR, { hits: 0 })))[0]?.remaining;
      // Requests in flight, by the times at which they end.
      let inFlight: { atMicros: number; isLost: boolean }[] = [];
      let used = 0;
      let lost = 0;
      let settled = 0;
      /** Ends the requests that are over and starts others, in one call. Each end finds a hold that has not expired. */
      const advance = async (micros: number, starts: number): Promise<void> => {
        bench.clock.advance(micros);
        const nowMicros = bench.clock.wallMicros();
        const ended = inFlight.filter(({ atMicros }) => atMicros <= nowMicros);
        inFlight = inFlight.filter(({ atMicros }) => atMicros > nowMicros);
        const calls = ended
          .filter(({ isLost }) => !isLost)
          .map(() => {
            const use = 1 + Math.floor(-3000 * Math.log(1 - random()));
            used += use;
            return end(use);
          });
        lost += ended.length - calls.length;
        settled += calls.length;
        for (let i = 0; i < starts; i++) {
          calls.push(takeFrom(store, holdItem('a', YEAR, { hits: ESTIMATE, lifetimeMillis: EXPIRY_MS })));
          const durationMicros = 50_000 + Math.floor(random() * 3_000_000);
          inFlight.push({ atMicros: nowMicros + durationMicros, isLost: random() < 0.01 });
        }
        const outcomes = (await Promise.all(calls)).map(([outcome]) => [outcome?.hold, outcome?.heldHits]);
        const settlements = Array.from({ length: calls.length - starts }, () => ['settled', ESTIMATE]);
        const placements = Array.from({ length: starts }, () => ['placed', undefined]);
        expectEqual(outcomes, [...settlements, ...placements]);
      };
      // Ten times the expiry.
      const pauseMicros = (10 * EXPIRY_MS * 1000 * STARTS_PER_CALL) / STARTS;
      for (let i = 0; i < STARTS; i += STARTS_PER_CALL) await advance(pauseMicros, STARTS_PER_CALL);
      await advance(4_000_000, 0);
      expect(inFlight).toEqual([]);
      expect(lost).toBeGreaterThan(20);
      expectEqual(await left(), LIMIT - used - ESTIMATE * (STARTS - settled));
      // After its expiry, no hold is left, and the estimates of lost ends stay taken.
      bench.clock.advance(EXPIRY_MS * 1000);
      expectEqual((await end(1))[0]?.hold, 'unknown');
      expectEqual(await left(), LIMIT - used - ESTIMATE * lost);
    });
  },
);
