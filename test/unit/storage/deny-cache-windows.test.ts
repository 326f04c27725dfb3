import { beforeEach, describe, expect, test } from '@jest/globals';
import type { TakeItem, TakeResult } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { DenyCache, type DenyCacheOptions } from '../../../src/storage/deny-cache.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { SlowStore } from '../../support/limiter/slow-store.js';
import { HUNDRED, takeItem } from '../../support/limiter/take-items.js';

const SECOND = 1_000_000;

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

/** Takes, and lets the store reply if the take reached it. */
async function take(...items: TakeItem[]): Promise<TakeResult> {
  const result = cache.take(items, Infinity);
  await store.answer();
  return result;
}

/** Returns whether the cache denies the next take without the store. */
function known(...items: TakeItem[]): boolean {
  const before = store.asked.length;
  void cache.take(items, Infinity);
  return store.asked.length === before;
}

const hits = (count: number, key = 'a') => takeItem(key, HUNDRED, { hits: count });

describe('cached denials of windows', () => {
  const MINUTE = windowRate('minute', 5);
  const window = (count: number, limit = 5) => takeItem('w', windowRate('minute', limit), { hits: count });
  const untilWindowEnd = () => 60 * SECOND - (clock.wallMicros() % (60 * SECOND));
  beforeEach(() => open(1000, { windows: true }));

  test('deny a window over its limit until it ends, for any hits', async () => {
    await take(window(5));
    expect(await take(window(1))).toMatchObject([{ limited: true, used: 6, cached: false }]);
    for (const count of [0, 1, Number.MAX_SAFE_INTEGER]) {
      expect(cache.take([window(count)], Infinity)).toMatchObject([
        { limited: true, remaining: 0, used: 6, waitMicros: untilWindowEnd(), cached: true },
      ]);
    }
    clock.advance(untilWindowEnd() - 1);
    expect(known(window(1))).toBe(true);
    clock.advance(1);
    expect(known(window(1))).toBe(false);
  });

  test('do not deny a peek exactly at the limit', async () => {
    open(1000, { windows: true }, false);
    await take(window(5));
    expect(await take(window(1))).toMatchObject([{ limited: true, used: 5 }]);
    expect(known(window(1))).toBe(true);
    expect(await take(window(0))).toMatchObject([{ limited: false }]);
  });

  test('do not deny fewer hits if denied hits do not count', async () => {
    open(1000, { windows: true }, false);
    await take(window(3));
    expect(await take(window(4))).toMatchObject([{ limited: true, used: 3 }]);
    expect([known(window(3)), known(window(2))]).toEqual([true, false]);
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
    expect(await take(window(1))).toMatchObject([{ limited: false }]);
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
