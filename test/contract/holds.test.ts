/* Tests holds where several stores, or several slots of a cluster, take part, and the sets of holds in Redis. */

import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BucketStore, Take, TakeOutcome } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../src/limiter/holds/concurrency.js';
import { MAX_SLOTS_PER_ITEM } from '../../src/limiter/holds/hold.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { holdsKey, redisKey } from '../../src/storage/redis/redis-key.js';
import { expectAtMost, expectEqual } from '../support/assert/quick-expect.js';
import { ClusterBench } from '../support/limiter/cluster-bench.js';
import { abandonedEnds, holdItem, settlementTake } from '../support/limiter/hold-items.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { memoryBench, redisBenches, takeFrom } from '../support/limiter/test-stores.js';
import { waitFor } from '../support/process/wait-for.js';

const MAX = 4;
const SLOTS = concurrencyRate(MAX);
const KEYS = ['one', 'two', 'three', 'four', 'five', 'six'];
const used = async (store: BucketStore, key: string, rate: Take['rate'] = SLOTS) =>
  (await takeFrom(store, takeItem(key, rate, { hits: 0 })))[0]?.used;

/**
 * Sends requests for one to three limits from `callers` callers at once, and ends the allowed ones after a while. Tests
 * with the ledger of allowed starts that no limit is ever exceeded. Ends abandoned holds. Returns the numbers of denied
 * requests and of abandoned holds.
 */
async function crowd(
  stores: readonly BucketStore[],
  callers: number,
  requests: number,
): Promise<{ readonly denied: number; readonly abandoned: number }> {
  const inFlight = new Map<string, number>(KEYS.map((key) => [key, 0]));
  let [denied, abandoned] = [0, 0];
  const add = (takes: readonly Take[], sign: 1 | -1): void => {
    for (const { key, hits } of takes) inFlight.set(key, (inFlight.get(key) ?? 0) + sign * hits);
  };
  const caller = async (seed: number): Promise<void> => {
    const random = seededRandom(seed);
    const any = (count: number) => Math.floor(random() * count);
    for (let i = 0; i < requests; i++) {
      const store = stores[any(stores.length)] as BucketStore;
      const first = any(KEYS.length);
      const takes = Array.from({ length: 1 + any(3) }, (_, at) =>
        holdItem(KEYS[(first + at) % KEYS.length] as string, SLOTS, { hits: 1 + any(2) }),
      );
      const outcomes = await takeFrom(store, ...takes);
      if (outcomes.some(({ overLimit }) => overLimit)) {
        denied++;
        const ends = abandonedEnds(takes, outcomes);
        abandoned += ends.length;
        const others = outcomes.filter(({ hold }) => hold !== 'abandoned');
        expect(others.every(({ hold }) => hold === undefined)).toBe(true);
        for (const { hold } of ends.length > 0 ? await takeFrom(store, ...ends) : [])
          expect(hold).toBe('settled');
        continue;
      }
      add(takes, 1);
      for (const count of inFlight.values()) expectAtMost(count, MAX);
      for (let turns = any(4); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
      add(takes, -1);
      // Any server settles.
      const other = stores[any(stores.length)] as BucketStore;
      const settlements = takes.map((take, at) => settlementTake(take, outcomes[at] as TakeOutcome));
      for (const { hold } of await takeFrom(other, ...settlements)) expect(hold).toBe('settled');
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, seed) => caller(seed + 1)));
  return { denied, abandoned };
}

async function expectNothingHeld(store: BucketStore): Promise<void> {
  await waitFor('all holds to be given back', async () => {
    const counts = await Promise.all(KEYS.map((key) => used(store, key)));
    return counts.every((count) => count === 0);
  });
}

const benches = redisBenches();

describe.each(benches)('holds on $name', (bench) => {
  beforeAll(() => bench.start());
  afterEach(() => bench.reset());

  const keyOf = (key: string) => redisKey(takeItem(key, SLOTS));
  const setOf = (key: string) => redisKey({ key: holdsKey(key), hashTagLength: key.length });

  test('of several servers never exceed the limit, even if Redis forgets the script', async () => {
    const stores = [await bench.open(), await bench.open(), await bench.open()];
    const flushing = setInterval(() => void bench.redis.script('FLUSH'), 20);
    const { denied, abandoned } = await crowd(stores, 12, 60);
    clearInterval(flushing);
    expect(denied).toBeGreaterThan(20);
    expect(abandoned).toBe(0);
    await expectNothingHeld(stores[0] as BucketStore);
  });

  test('that start and end in one call are decided one after the other', async () => {
    const store = await bench.open();
    const memory = new MemoryStore({ ...MEMORY, clock: bench.clock });
    const random = seededRandom(7);
    const any = (count: number) => Math.floor(random() * count);
    const debt = tokenBucketRate(100, 10, 1_000_000, 100, Infinity);
    const placed: Take[] = [];
    for (let round = 0; round < 40; round++) {
      const requests = Array.from({ length: 12 }, (): Take[] => {
        const key = KEYS[any(2)] as string;
        const settled = any(3) === 0 ? placed.splice(any(placed.length), 1)[0] : undefined;
        if (settled !== undefined) return [settled];
        if (any(8) === 0) return [takeItem('bucket', debt)];
        const enforcement = any(4) === 0 ? 'observe' : 'enforce';
        const first = holdItem(key, SLOTS, { hits: any(4), enforcement });
        return any(5) === 0 ? [first, takeItem('bucket', debt)] : [first];
      });
      const expected = requests.map((takes) => memory.take(takes));
      const found = await Promise.all(requests.map((takes) => takeFrom(store, ...takes)));
      expectEqual(found, expected);
      requests.forEach(([item], i) => {
        const outcome = found[i]?.[0] as TakeOutcome;
        if (outcome.hold === 'placed') placed.push(settlementTake(item as Take, outcome));
      });
    }
  });

  test('are placed once if the call must be repeated with other calendar windows', async () => {
    const store = await bench.open();
    const days = windowRate('day', 10, { timeZone: 'Europe/Berlin' });
    bench.clock.advance(40 * UNIT_MICROS.day);
    const results = await Promise.all(
      [holdItem('one', SLOTS, { enforcement: 'observe' }), takeItem('days', days)].map((take) =>
        takeFrom(store, take),
      ),
    );
    expect(results).toMatchObject([[{ used: 1 }], [{ used: 1 }]]);
  });

  test('are a set with a member for each slot', async () => {
    const store = await bench.open();
    const takes = [holdItem('one', SLOTS, { hits: 2 }), holdItem('one', SLOTS, { lifetimeMillis: 1000 })];
    for (const taken of takes) await takeFrom(store, taken);
    const live = async () => bench.redis.zcount(keyOf('one'), `(${bench.clock.wallMicros()}`, '+inf');
    expect([await live(), await used(store, 'one')]).toEqual([3, 3]);
    bench.clock.advance(1_000_000);
    expect([await live(), await used(store, 'one')]).toEqual([2, 2]);
    await takeFrom(store, settlementTake(takes[0] as Take, {}));
    expect(await live()).toBe(0);
  });

  test('are in a key that lives longer than its last hold, whatever the lifetime of the next one', async () => {
    const store = await bench.openWith({});
    for (const [key, rate] of [
      ['one', SLOTS],
      ['bucket', tokenBucketRate(100, 10, 1_000_000, 0, Infinity)],
    ] as const) {
      const set = rate === SLOTS ? keyOf(key) : setOf(key);
      const take = (lifetimeMillis: number) => takeFrom(store, holdItem(key, rate, { lifetimeMillis }));
      await take(60_000);
      const first = await bench.redis.pttl(set);
      expect(first).toBeGreaterThanOrEqual(60_000);
      expect(first).toBeLessThan(66_000);
      await take(1000);
      expect(await bench.redis.pttl(set)).toBeGreaterThanOrEqual(first - 5000);
      await take(90_000);
      expect(await bench.redis.pttl(set)).toBeGreaterThanOrEqual(90_000);
      // The key of a new set has its own lifetime.
      await bench.redis.del(set);
      await take(2000);
      expect(await bench.redis.pttl(set)).toBeLessThan(8000);
    }
  });

  test('are in a key that lives one to two seconds longer than the last of many holds', async () => {
    const store = await bench.openWith({});
    const [slots, rate] = [concurrencyRate(100_000), tokenBucketRate(100_000, 10, 1_000_000, 0, Infinity)];
    const random = seededRandom(31);
    const any = (count: number) => Math.floor(random() * count);
    for (const key of ['one', 'bucket']) {
      const set = key === 'one' ? keyOf(key) : setOf(key);
      for (let i = 0; i < 200; i++) {
        const lifetimeMillis = 1 + any(any(2) === 0 ? 5000 : 100_000);
        await takeFrom(store, holdItem(key, key === 'one' ? slots : rate, { lifetimeMillis }));
        const [, last] = await bench.redis.zrevrange(set, 0, 0, 'WITHSCORES');
        const lastMillis = Number(last) / 1000 - Date.now();
        const left = await bench.redis.pttl(set);
        // Some milliseconds may pass between the readings.
        expect(left).toBeGreaterThanOrEqual(lastMillis + 900);
        expect(left).toBeLessThanOrEqual(lastMillis + 2000);
      }
    }
  });

  test('that expired together are removed in parts', async () => {
    const store = await bench.open();
    const many = concurrencyRate(100_000);
    for (let i = 0; i < 3; i++)
      await takeFrom(store, holdItem('one', many, { hits: 1000, lifetimeMillis: 10 }));
    bench.clock.advance(2_000_000);
    const sizes: number[] = [];
    for (let i = 0; i < 3; i++) {
      expect((await takeFrom(store, holdItem('one', many, { hits: 1 })))[0]?.used).toBe(i + 1);
      sizes.push(await bench.redis.zcard(keyOf('one')));
    }
    // One member tells how long the key exists.
    expect(sizes).toEqual([2802, 2603, 2404]);
  });

  test('occupy Redis no longer than other calls, whatever the number of their slots', async () => {
    const store = await bench.open();
    const calls = async (takes: readonly Take[]): Promise<number> => {
      const before = store.calls;
      await Promise.all(takes.map((take) => takeFrom(store, take)));
      return store.calls - before;
    };
    const wide = concurrencyRate(100_000);
    const starts = (key: string, count: number, hits: number) =>
      Array.from({ length: count }, () => holdItem(key, wide, { hits }));
    expect(await calls(starts('one', 100, 1))).toBe(1);
    // Two slots count as much as one bucket, and a call has 256 buckets.
    const hundreds = starts('hundred', 25, 100);
    expect(await calls(hundreds)).toBe(5);
    expect(await calls(hundreds.map((take) => settlementTake(take, {})))).toBe(5);
    const thousands = starts('thousand', 5, 1000);
    expect(await calls(thousands)).toBe(5);
    expect(await calls(thousands.map((take) => settlementTake(take, {})))).toBe(5);
  });

  test('are placed by takes that follow equal takes without holds in the same call', async () => {
    const store = await bench.open();
    const debt = tokenBucketRate(100, 10, 1_000_000, 100, Infinity);
    const plain = () => [takeItem('bucket', debt), takeItem('other', debt)];
    const held = () => [holdItem('bucket', debt), takeItem('other', debt)];
    const results = await Promise.all(
      [plain(), held(), held(), plain()].map((takes) => takeFrom(store, ...takes)),
    );
    expect(results.map(([outcome]) => outcome?.hold)).toEqual([undefined, 'placed', 'placed', undefined]);
    expect(await bench.redis.zcount(setOf('bucket'), '0', '+inf')).toBe(2);
  });
});

describe.each([memoryBench(), ...redisBenches().slice(0, 1)])('slots on $name', (bench) => {
  beforeAll(() => bench.start());
  afterEach(() => bench.reset());

  test('of one item are at most 1,000, however large the limit is', async () => {
    const store = await bench.open();
    const huge = concurrencyRate(4_000_000_000);
    const most = holdItem('huge', huge, { hits: MAX_SLOTS_PER_ITEM });
    const outcome = (await takeFrom(store, most))[0] as TakeOutcome;
    expect(outcome).toMatchObject({ overLimit: false, hold: 'placed', used: 1000 });
    for (const enforcement of ['enforce', 'observe', 'quota'] as const) {
      for (const hits of [MAX_SLOTS_PER_ITEM + 1, Number.MAX_SAFE_INTEGER]) {
        const [, refused] = await takeFrom(
          store,
          takeItem('b', HUNDRED),
          holdItem('huge', huge, { hits, enforcement }),
        );
        expect(refused).toMatchObject({ overLimit: true, used: 1000 });
        expect(refused?.hold).toBe(undefined);
      }
    }
    expect(await used(store, 'huge', huge)).toBe(1000);
    expect(await takeFrom(store, settlementTake(most, outcome))).toMatchObject([
      { hold: 'settled', used: 0 },
    ]);
  });

  test('that a peek asks for are not held', async () => {
    const store = await bench.open();
    const peek = holdItem('one', SLOTS, { hits: 0 });
    const [outcome] = await takeFrom(store, peek);
    expect(outcome).toMatchObject({ overLimit: false, remaining: MAX, used: 0 });
    expect(outcome?.hold).toBe(undefined);
    expect((await takeFrom(store, holdItem('bucket', HUNDRED, { hits: 0 })))[0]?.hold).toBe(undefined);
  });
});

describe('holds in several slots of a cluster', () => {
  const bench = new ClusterBench('redis-server');
  beforeAll(() => bench.start());

  test('never exceed a limit, and a denied request leaves none', async () => {
    const stores = [await bench.open(), await bench.open()];
    expect(new Set(KEYS.map((key) => stores[0]?.partitionOf(takeItem(key, SLOTS)))).size).toBe(KEYS.length);
    const { denied, abandoned } = await crowd(stores, 12, 60);
    expect(denied).toBeGreaterThan(20);
    expect(abandoned).toBeGreaterThan(20);
    await expectNothingHeld(stores[0] as BucketStore);
  });
});
