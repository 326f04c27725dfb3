import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeOutcome,
  type TakeResult,
} from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { DenyCache, type DenyCacheOptions } from '../../../src/storage/deny-cache.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { holdItem, settlementTake } from '../../support/limiter/hold-items.js';
import { SlowStore } from '../../support/limiter/slow-store.js';
import { HUNDRED, takeItem } from '../../support/limiter/take-items.js';

const MS = 1000;
const SECOND = 1000 * MS;

let clock: FakeClock;
let store: SlowStore;
let cache: DenyCache;

function open(maxEntries = 1000, more: Partial<DenyCacheOptions> = {}, countDeniedHits = true): void {
  clock = new FakeClock();
  store = new SlowStore(clock, countDeniedHits);
  cache = new DenyCache({
    store,
    maxAgeMicros: SECOND,
    maxEntries,
    monotonicMicros: () => clock.monotonicMicros(),
    ...more,
  });
}

beforeEach(() => open());

/** Takes, and lets the store reply if the take reached it. */
async function take(...takes: Take[]): Promise<TakeResult> {
  const result = cache.take(takes, Infinity);
  await store.answer();
  return result;
}

/** Returns whether the cache denies the next take without the store. */
function known(...takes: Take[]): boolean {
  const before = store.asked.length;
  void cache.take(takes, Infinity);
  return store.asked.length === before;
}

const hits = (count: number, key = 'a') => takeItem(key, HUNDRED, { hits: count });
const peek = (key = 'a') => takeItem(key, HUNDRED, { hits: 0 });
const refund = (count: number, key = 'a') => takeItem(key, HUNDRED, { hits: count, refund: true });

describe('a denial', () => {
  test('is repeated with decreasing waits until the request may be allowed', async () => {
    await take(hits(100));
    expect(await take(hits(5))).toMatchObject([{ overLimit: true, remaining: 0, waitMicros: 500 * MS }]);
    clock.advance(260 * MS);
    expect(cache.take([hits(5)], Infinity)).toMatchObject([
      { overLimit: true, remaining: 2, waitMicros: 240 * MS },
    ]);
    clock.advance(240 * MS - 1);
    expect(cache.take([hits(5)], Infinity)).toMatchObject([{ overLimit: true, remaining: 4, waitMicros: 1 }]);
    clock.advance(1);
    expect(await take(hits(5))).toMatchObject([{ overLimit: false, remaining: 0, waitMicros: 100 * MS }]);
    expect([cache.answers, store.asked.length]).toEqual([2, 3]);
  });

  test('of a single hit applies to a peek, and that of a peek to a hit', async () => {
    await take(hits(100));
    await take(hits(1));
    expect(cache.take([peek()], Infinity)).toMatchObject([
      { overLimit: true, remaining: 0, waitMicros: 100 * MS },
    ]);
    cache.clear();
    await take(peek());
    expect(cache.take([hits(1)], Infinity)).toMatchObject([
      { overLimit: true, remaining: 0, waitMicros: 100 * MS },
    ]);
  });
});

describe('a request', () => {
  beforeEach(async () => {
    await take(hits(100, 'a'), hits(100, 'b'));
    await take(hits(1, 'a'), hits(1, 'b'));
  });

  test('is denied from the cache if all its buckets are cached, with any enforcement', () => {
    const observe = takeItem('b', HUNDRED, { enforcement: 'observe' });
    const quota = takeItem('a', HUNDRED, { enforcement: 'quota', hits: 2 });
    expect(cache.take([observe, quota, quota], Infinity)).toMatchObject([
      { overLimit: true, remaining: 0, waitMicros: 100 * MS },
      { overLimit: true, remaining: 0, waitMicros: 200 * MS },
      { overLimit: true, remaining: 0, waitMicros: 200 * MS },
    ]);
  });

  test('reaches the store if its rate is another object with the same numbers', () => {
    expect(known(takeItem('a', tokenBucketRate(100, 10, SECOND)))).toBe(false);
    expect(known(hits(1))).toBe(true);
  });

  test('reaches the store after a reload', () => {
    cache.clear();
    expect([cache.entries, known(hits(1))]).toEqual([0, false]);
  });
});

describe('the cache stores', () => {
  test('the limited buckets of a denied request, not those with enough tokens', async () => {
    await take(hits(100, 'a'));
    await take(hits(1, 'a'), hits(1, 'b'));
    expect(cache.entries).toBe(1);
    expect(known(hits(1, 'a'))).toBe(true);
  });

  test('no windows', async () => {
    const window = takeItem('w', windowRate('second', 0));
    expect(await take(window)).toMatchObject([{ overLimit: true }]);
    expect(known(window)).toBe(false);
  });

  test.each([0, 400])('no bucket that occurs twice, among %d others', async (others) => {
    const more = Array.from({ length: others }, (_, i) => hits(101, `other ${i}`));
    // The second item saw the state that the first would have left.
    const [first, second] = (await take(hits(60), hits(60), ...more)) as readonly TakeOutcome[];
    expect([first, second]).toMatchObject([{ overLimit: false }, { overLimit: true, remaining: 40 }]);
    expect(known(hits(60))).toBe(false);
  });

  test('no results of failures', async () => {
    const failing: BucketStore = {
      take: () => new StorageError('timeout', 'Redis did not answer in time'),
      close: async () => {},
    };
    const over = new DenyCache({
      store: failing,
      maxAgeMicros: SECOND,
      maxEntries: 10,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    expect(over.take([hits(1)], Infinity)).toBeInstanceOf(StorageError);
    expect(over.entries).toBe(0);
  });
});

describe('an entry is removed', () => {
  beforeEach(async () => {
    await take(hits(95));
    await take(hits(10));
    expect(known(hits(10))).toBe(true);
  });

  test('when a refund is sent', () => {
    void cache.take([refund(50)], Infinity);
    expect(known(hits(10))).toBe(false);
  });

  test('by a refund that is sent during a take', async () => {
    clock.advance(SECOND);
    await take(hits(99));
    void cache.take([hits(10)], Infinity);
    void cache.take([refund(50)], Infinity);
    await store.answer();
    await store.answer();
    expect(known(hits(10))).toBe(false);
  });

  test('when another process gave tokens during a take', async () => {
    clock.advance(SECOND);
    await take(hits(99));
    void cache.take([hits(10)], Infinity);
    cache.clear();
    await store.answer();
    expect(known(hits(10))).toBe(false);
    // The next denial is cached again.
    await store.answer();
    await take(hits(10));
    expect(known(hits(10))).toBe(true);
  });
});

describe('bounds', () => {
  test('remove the oldest denials and keep the newest', async () => {
    open(100);
    for (let i = 0; i < 1000; i++) {
      await take(hits(100, `k${i}`));
      await take(hits(1, `k${i}`));
      expect(cache.entries).toBeLessThanOrEqual(100);
    }
    expect([known(hits(1, 'k999')), known(hits(1, 'k960')), known(hits(1, 'k100'))]).toMatchObject([
      true,
      true,
      false,
    ]);
  });

  test('remove expired denials when later ones arrive', async () => {
    for (let i = 0; i < 300; i++) {
      await take(hits(100, `k${i}`));
      await take(hits(1, `k${i}`));
    }
    for (let i = 0; i < 2; i++) {
      clock.advance(SECOND);
      await take(hits(100, `later${i}`));
      await take(hits(100, `later${i}`));
    }
    expect(cache.entries).toBe(2);
  });
});

describe('holds', () => {
  const SLOTS = concurrencyRate(1);

  test('of concurrent requests are never denied from the cache', async () => {
    await take(holdItem('slots', SLOTS));
    expect(await take(holdItem('slots', SLOTS))).toMatchObject([{ overLimit: true }]);
    expect(known(holdItem('slots', SLOTS))).toBe(false);
    expect(known(takeItem('slots', SLOTS, { hits: 0 }))).toBe(false);
    expect(cache.entries).toBe(0);
  });

  test('of a bucket are never denied from the cache, nor are its peeks', async () => {
    await take(holdItem('a', HUNDRED, { hits: 100 }));
    expect(await take(holdItem('a', HUNDRED, { hits: 5 }))).toMatchObject([{ overLimit: true }]);
    expect(await take(holdItem('a', HUNDRED, { hits: 0 }))).toMatchObject([{ overLimit: true }]);
    expect([known(holdItem('a', HUNDRED)), known(holdItem('a', HUNDRED, { hits: 0 }))]).toEqual([
      false,
      false,
    ]);
    expect(cache.entries).toBe(0);
    // A take without a hold, such as an earlier version of the rule, may be cached.
    await take(hits(5));
    expect([known(hits(5)), known(holdItem('a', HUNDRED, { hits: 5 }))]).toEqual([true, false]);
  });

  test('are settled in the store, which also removes the denials of their buckets', async () => {
    const start = holdItem('a', HUNDRED, { hits: 100 });
    const outcomes = (await take(start)) as readonly TakeOutcome[];
    await take(hits(5));
    expect(known(hits(5))).toBe(true);
    expect(await take(settlementTake(start, outcomes[0] as TakeOutcome, 20))).toMatchObject([
      { hold: 'settled' },
    ]);
    expect(await take(hits(5))).toMatchObject([{ overLimit: false, remaining: 75 }]);
  });

  test('leave the denials of other limits of a request to the cache only if they are alone', async () => {
    await take(hits(100, 'b'));
    await take(hits(5, 'b'), holdItem('slots', SLOTS));
    expect([known(hits(5, 'b')), known(hits(5, 'b'), holdItem('slots', SLOTS))]).toEqual([true, false]);
  });
});

describe('cached denials of windows', () => {
  const MINUTE = windowRate('minute', 5);
  const window = (count: number, limit = 5) => takeItem('w', windowRate('minute', limit), { hits: count });
  const untilWindowEnd = () => 60 * SECOND - (clock.wallMicros() % (60 * SECOND));
  beforeEach(() => open(1000, { windows: true }));

  test('deny a window over its limit until it ends, for any hits', async () => {
    await take(window(5));
    expect(await take(window(1))).toMatchObject([{ overLimit: true, used: 6, cached: false }]);
    for (const count of [0, 1, Number.MAX_SAFE_INTEGER]) {
      expect(cache.take([window(count)], Infinity)).toMatchObject([
        { overLimit: true, remaining: 0, used: 6, waitMicros: untilWindowEnd(), cached: true },
      ]);
    }
    clock.advance(untilWindowEnd() - 1);
    expect(known(window(1))).toBe(true);
    clock.advance(1);
    expect(known(window(1))).toBe(false);
  });

  test('deny a higher limit only if it is exceeded, too, and never a window of another unit', async () => {
    await take(window(8));
    expect([known(window(1, 8)), known(window(2, 9)), known(window(1, 9))]).toEqual([true, true, false]);
    expect(known(takeItem('w', windowRate('hour', 5)))).toBe(false);
    expect(known(takeItem('w', HUNDRED))).toBe(false);
  });

  test('are removed by a refund, even during an earlier request in several steps', async () => {
    await take(window(6));
    await take(takeItem('w', MINUTE, { hits: 3, refund: true }));
    expect(await take(window(1))).toMatchObject([{ overLimit: false }]);
    const early = cache.take([window(9), hits(1, 'z')], Infinity);
    void cache.take([takeItem('w', MINUTE, { hits: 9, refund: true })], Infinity);
    await store.answer();
    await early;
    expect(known(window(1))).toBe(false);
  });

  test('are kept longer if they are looked up', async () => {
    open(4, { windows: true });
    const of = (name: string) => takeItem(name, MINUTE, { hits: 6 });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await take(of(name));
      expect([name, known(of('a'))]).toEqual([name, true]);
      expect(cache.entries).toBeLessThanOrEqual(4);
    }
    expect(known(of('b'))).toBe(false);
    expect(cache.stats.evacuateCount).toBeGreaterThan(0);
  });

  test('are bounded in bytes', async () => {
    open(1000, { windows: true, maxBytes: 10_000 });
    for (let i = 0; i < 200; i++) await take(takeItem(`key ${i}`, MINUTE, { hits: 6 }));
    expect(cache.entries).toBeGreaterThan(20);
    expect(cache.entries).toBeLessThanOrEqual(10_000 / 160);
    const long = takeItem('k'.repeat(10_000), MINUTE, { hits: 6 });
    await take(long);
    expect(known(long)).toBe(false);
  });

  test('are counted when they are looked up', async () => {
    await take(window(6));
    known(window(1));
    known(window(1), hits(1));
    clock.advance(untilWindowEnd());
    await take(window(6));
    await take(window(6, 100));
    expect(cache.stats).toEqual({
      entryCount: 0,
      hitCount: 2,
      missCount: 4,
      lookupCount: 6,
      expiredCount: 1,
      evacuateCount: 0,
      overwriteCount: 0,
    });
  });
});
