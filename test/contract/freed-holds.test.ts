/* Tests reservations that give their hits back when they expire (`unknown: free`). */

import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BucketStore, Take } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { holdsKey, redisKey } from '../../src/storage/redis/redis-key.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { holdItem, settlementTake } from '../support/limiter/hold-items.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { memoryBench, redisBenches, takeFrom } from '../support/limiter/test-stores.js';

const SECOND = 1_000_000;
/** A token takes a second. */
const BUCKET = tokenBucketRate(1000, 1, SECOND, 0, Infinity);
const WINDOW = windowRate('hour', 1000, { countsOnlyAllowed: true, minChargeHits: Infinity });

function freedItem(key: string, rate: Take['rate'], hits: number, lifetimeMillis = 20_000): Take {
  const take = holdItem(key, rate, { hits, lifetimeMillis });
  return { ...take, holds: { id: '', lifetimeMillis, ...take.holds, freesUnknown: true } };
}

/** Returns what a look with the given rule finds. */
async function left(store: BucketStore, key: string, rate: Take['rate'], frees = true): Promise<number> {
  const look = frees ? freedItem(key, rate, 0) : holdItem(key, rate, { hits: 0 });
  return (await takeFrom(store, look))[0]?.remaining ?? -1;
}

describe.each([memoryBench(), ...redisBenches()])(
  'reservations that free an unknown use on $name',
  (bench) => {
    beforeAll(() => bench.start());
    afterEach(() => bench.reset());

    /** Returns a store with two holds: 300 hits, which expire after 20 seconds, and 500 hits. */
    async function openWithHolds(rate: Take['rate']): Promise<BucketStore> {
      const store = await bench.open();
      await takeFrom(store, freedItem('a', rate, 300));
      await takeFrom(store, freedItem('a', rate, 500, 600_000));
      return store;
    }

    test('give what has not refilled back to a token bucket when they expire', async () => {
      const store = await openWithHolds(BUCKET);
      bench.clock.advance(19 * SECOND);
      expect(await left(store, 'a', BUCKET)).toBe(219);
      // The first 20 or 21 tokens had refilled when the hold expired; the store may wait a second for other clocks.
      bench.clock.advance(2 * SECOND);
      const found = await left(store, 'a', BUCKET);
      expect([500, 501]).toContain(found);
      bench.clock.advance(100 * SECOND);
      expect(await left(store, 'a', BUCKET)).toBe(found + 100);
      // A look and a denied take also give back.
      await takeFrom(store, freedItem('a', BUCKET, 600));
      bench.clock.advance(21 * SECOND);
      expect((await takeFrom(store, freedItem('a', BUCKET, 900)))[0]).toMatchObject({
        overLimit: true,
        remaining: found + 121,
      });
    });

    test('leave an idle bucket what it has refilled since', async () => {
      const store = await openWithHolds(BUCKET);
      bench.clock.advance(121 * SECOND);
      expect([600, 601]).toContain(await left(store, 'a', BUCKET));
    });

    test('give everything back to a window when they expire, unless it has ended', async () => {
      const store = await openWithHolds(WINDOW);
      bench.clock.advance(22 * SECOND);
      expect(await left(store, 'a', WINDOW)).toBe(500);
      await takeFrom(store, freedItem('a', WINDOW, 400, 3600_000));
      bench.clock.advance(3600 * SECOND);
      await takeFrom(store, freedItem('a', WINDOW, 900, 10));
      expect(await left(store, 'a', WINDOW)).toBe(100);
      bench.clock.advance(3000 * SECOND);
      expect(await left(store, 'a', WINDOW)).toBe(1000);
    });

    test('keep their setting when a reload changes the rule', async () => {
      const store = await bench.open();
      // Placed with `keep`, which a reload changes to `free`.
      await takeFrom(store, holdItem('a', WINDOW, { hits: 100, lifetimeMillis: 20_000 }));
      const freed = freedItem('a', WINDOW, 200);
      const settled = freedItem('a', WINDOW, 50);
      await takeFrom(store, freed);
      const [outcome] = await takeFrom(store, settled);
      // A reload to `keep`.
      expect(await left(store, 'a', WINDOW, false)).toBe(650);
      expect((await takeFrom(store, settlementTake(settled, outcome ?? {})))[0]?.hold).toBe('settled');
      await takeFrom(store, holdItem('a', WINDOW, { hits: 10, lifetimeMillis: 20_000 }));
      bench.clock.advance(22 * SECOND);
      // A reload to `free`.
      expect(await left(store, 'a', WINDOW)).toBe(890);
      expect((await takeFrom(store, settlementTake(freed, {})))[0]?.hold).toBe('unknown');
    });

    test('are given back before the settlement of another hold reports the bucket', async () => {
      const store = await bench.open();
      const kept = holdItem('a', WINDOW, { hits: 100 });
      const freed = freedItem('a', WINDOW, 100, 600_000);
      await takeFrom(store, kept, freedItem('a', WINDOW, 300), freed);
      bench.clock.advance(22 * SECOND);
      const found = await takeFrom(store, settlementTake(kept, {}, 10), settlementTake(freed, {}, 20));
      expect(found.map(({ remaining }) => remaining)).toEqual([890, 970]);
      expect(await left(store, 'a', WINDOW)).toBe(970);
    });

    test('are given back by a refund of nothing, with which bucket commands look', async () => {
      const store = await bench.open();
      await takeFrom(store, freedItem('a', WINDOW, 300));
      bench.clock.advance(22 * SECOND);
      const look = { ...freedItem('a', WINDOW, 0), refund: true };
      expect((await takeFrom(store, look))[0]).toMatchObject({ remaining: 1000 });
      bench.clock.advance(22 * SECOND);
      expect(await left(store, 'a', WINDOW)).toBe(1000);
    });

    test('are settled only once, also if they have expired', async () => {
      const store = await bench.open();
      const takes = [freedItem('a', WINDOW, 100), freedItem('a', WINDOW, 100), freedItem('b', BUCKET, 100)];
      const outcomes = await takeFrom(store, ...takes);
      const settlements = takes.map((take, i) => settlementTake(take, outcomes[i] ?? {}, 60));
      expect((await takeFrom(store, settlements[0] as Take))[0]?.hold).toBe('settled');
      bench.clock.advance(22 * SECOND);
      const effects = (await takeFrom(store, ...settlements)).map(({ hold }) => hold);
      expect(effects).toEqual(['unknown', 'unknown', 'unknown']);
      expect([await left(store, 'a', WINDOW), await left(store, 'b', BUCKET)]).toEqual([940, 1000]);
    });
  },
);

describe.each(redisBenches())('expired reservations on $name', (bench) => {
  beforeAll(() => bench.start());
  afterEach(() => bench.reset());

  const setOf = (key: string) => redisKey({ key: holdsKey(key, true), hashTagLength: key.length });

  test('are given back once in calls with many requests, as in memory', async () => {
    const store = await bench.open();
    const memory = new MemoryStore({ ...MEMORY, clock: bench.clock });
    const random = seededRandom(7);
    const any = (count: number) => Math.floor(random() * count);
    const rates = {
      bucket: tokenBucketRate(1000, 7, SECOND, 200, Infinity),
      window: windowRate('day', 10_000, { maxDebt: 100, minChargeHits: Infinity }),
      calendar: windowRate('day', 10_000, { timeZone: 'Europe/Berlin', minChargeHits: Infinity }),
    };
    const names = Object.keys(rates) as (keyof typeof rates)[];
    const placed: Take[] = [];
    let denied = 0;
    for (let round = 0; round < 80; round++) {
      const requests = Array.from({ length: 10 }, (): Take => {
        const key = names[any(names.length)] as keyof typeof rates;
        const settlement = any(4) === 0 ? placed.splice(any(placed.length), 1)[0] : undefined;
        if (settlement !== undefined) return settlement;
        return freedItem(key, rates[key], any(6) === 0 ? 0 : 1 + any(150), 1000 + any(2) * 15_000);
      });
      const expected = requests.map((take) => memory.take([take]));
      const found = await Promise.all(requests.map((take) => takeFrom(store, take)));
      expectEqual(found, expected);
      requests.forEach((take, i) => {
        const outcome = found[i]?.[0];
        if (outcome?.overLimit === true) denied++;
        if (outcome?.hold === 'placed') placed.push(settlementTake(take, outcome, any(3) * 80));
      });
      bench.clock.advance(any(3) === 0 ? any(9 * SECOND) : any(SECOND));
    }
    expect(denied).toBeGreaterThan(20);
  });

  test('stay in their key until the bucket is full, or the window ends', async () => {
    const store = await bench.openWith({});
    for (const [rate, seconds] of [
      [BUCKET, 700],
      [WINDOW, 0],
    ] as const) {
      const key = rate.kind;
      await takeFrom(store, freedItem(key, rate, 700, 1000));
      const bucketMillis = await bench.redis.pttl(redisKey({ key, hashTagLength: key.length }));
      expect(bucketMillis).toBeGreaterThan(1000 * (seconds - 5));
      expect(await bench.redis.pttl(setOf(key))).toBeGreaterThanOrEqual(bucketMillis - 1000);
    }
  });

  test('stay in their key until the bucket is full after a charge', async () => {
    const store = await bench.openWith({});
    const rate = tokenBucketRate(1000, 1, SECOND, 5000, Infinity);
    const charged = freedItem('a', rate, 10);
    await takeFrom(store, freedItem('a', rate, 500));
    const [outcome] = await takeFrom(store, charged);
    await takeFrom(store, settlementTake(charged, outcome ?? {}, 3000));
    const bucketMillis = await bench.redis.pttl(redisKey({ key: 'a', hashTagLength: 1 }));
    expect(bucketMillis).toBeGreaterThan(3_400_000);
    expect(await bench.redis.pttl(setOf('a'))).toBeGreaterThanOrEqual(bucketMillis - 1000);
  });

  test.each([
    ['equal starts', 1],
    ['starts of two kinds in turns', 2],
  ])('are given back as fast as calls with many %s place others', async (_name, kinds) => {
    const store = await bench.open();
    const rate = windowRate('hour', 10_000, { countsOnlyAllowed: true, minChargeHits: Infinity });
    const sizes: number[] = [];
    for (let round = 0; round < 5; round++) {
      const starts = Array.from({ length: 900 }, (_, i) => freedItem('a', rate, 1 + (i % kinds), 1000));
      await Promise.all(starts.map((start) => takeFrom(store, start)));
      sizes.push(await bench.redis.zcount(setOf('a'), '0', '+inf'));
      bench.clock.advance(3 * SECOND);
    }
    expect(Math.max(...sizes)).toBeLessThanOrEqual(901);
  });

  test('are given back in parts, and never more than they still cost', async () => {
    const store = await bench.open();
    const year = windowRate('year', 4_000_000, { countsOnlyAllowed: true, minChargeHits: Infinity });
    const slow = tokenBucketRate(4_000_000, 1, SECOND, 0, Infinity);
    for (const rate of [year, slow]) {
      const key = rate.kind;
      const count = rate === year ? 100_000 : 20_000;
      const bucket = redisKey({ key, hashTagLength: key.length });
      await takeFrom(store, freedItem(key, rate, 1));
      // Further holds of 10 hits each, and the state of the bucket with them.
      const [form, first, second, third] = ((await bench.redis.get(bucket)) as string).split(':');
      const hits = 10 * count;
      const state =
        rate === year ? [form, first, 1 + hits, third] : [form, Number(first) + hits * SECOND, second, third];
      await bench.redis.set(bucket, state.join(':'));
      const startMicros = bench.clock.wallMicros();
      await bench.redis.eval(
        `for i = 1, ${count} do
           local full = ${rate === year ? 0 : `ARGV[1] + (10 * i - 9) * ${SECOND}`}
           local member = struct.pack('>I7I7I4I4I7', i, i, 10, 20000, full)
           redis.call('ZADD', KEYS[1], string.format('%.0f', ARGV[1] + 20 * ${SECOND}), member)
         end`,
        1,
        setOf(key),
        String(startMicros),
      );
      bench.clock.advance(22 * SECOND);
      // The first call removes 200 holds and adds its own one, and a member for those that are left.
      const sizes = [count + 1];
      for (let i = 0; i < 3; i++) {
        await takeFrom(store, freedItem(key, rate, 1, 600_000));
        sizes.push(await bench.redis.zcount(setOf(key), '0', '+inf'));
      }
      expect(sizes).toEqual([0, 198, 396, 594].map((removed) => count + 1 - removed));
      while ((await bench.redis.zcount(setOf(key), '0', '+inf')) > 3) await left(store, key, rate);
      const missing = 4_000_000 - (await left(store, key, rate));
      // The last three takes are in the bucket, and at most what it would have refilled without the others.
      if (rate === year) expect(missing).toBe(3);
      else expect([missing >= 3, missing <= 25]).toEqual([true, true]);
    }
  });
});
