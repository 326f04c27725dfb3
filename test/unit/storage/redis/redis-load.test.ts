import { describe, expect, test } from '@jest/globals';
import type { TakeItem } from '../../../../src/limiter/bucket-store.js';
import { RedisKeys } from '../../../../src/storage/redis/redis-key.js';
import { RedisLoad } from '../../../../src/storage/redis/redis-load.js';
import { TakeBatch } from '../../../../src/storage/redis/take-batch.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';

const MS = 1000;

/** A call since `sinceMicros` with one request of so many items. */
function batchOf(items: number, sinceMicros: number): TakeBatch {
  const batch = new TakeBatch(new RedisKeys(''), true, () => 0, sinceMicros);
  const takes: TakeItem[] = Array.from({ length: items }, (_, i) => takeItem(`k${i}`, HUNDRED));
  void batch.add(takes, Number.POSITIVE_INFINITY);
  return batch;
}

describe('an answer that is late', () => {
  test('behind much work is late for the work, while Redis answers', () => {
    const load = new RedisLoad();
    load.sent(batchOf(4000, 0), 0);
    const narrow = batchOf(1, MS);
    load.sent(narrow, MS);
    const { sinceMicros, dueMicros } = narrow;
    expect(load.explains(sinceMicros, dueMicros, 21 * MS, 20 * MS)).toBe(true);
    // A wait of a second is more than the work explains.
    expect(load.explains(sinceMicros, dueMicros, 1001 * MS, 200 * MS)).toBe(false);
    // Redis has not answered for 250 ms.
    expect(load.explains(sinceMicros, dueMicros, 300 * MS, 251 * MS)).toBe(false);
  });

  test('of a Redis with next to nothing to do is late for Redis', () => {
    const load = new RedisLoad();
    const batch = batchOf(1, 0);
    load.sent(batch, 0);
    expect(load.explains(0, batch.dueMicros, 20 * MS, 19 * MS)).toBe(false);
  });

  test('over a slow way is late for the way, however much is on it', () => {
    const load = new RedisLoad();
    const open: TakeBatch[] = [];
    // A call of 5 items each millisecond, answered 30 ms later: Redis does 10 µs of work for each.
    for (let ms = 0; ms < 200; ms++) {
      const batch = batchOf(5, ms * MS);
      load.sent(batch, ms * MS);
      open.push(batch);
      if (open.length <= 30) continue;
      load.answered(ms * MS);
      load.ended(open.shift() as TakeBatch);
      expect(load.explains(batch.sinceMicros, batch.dueMicros, (ms + 15) * MS, (ms + 14) * MS)).toBe(false);
    }
  });

  test('counts only work that is not done', () => {
    const load = new RedisLoad();
    const wide = batchOf(4000, 0);
    load.sent(wide, 0);
    load.answered(40 * MS);
    load.ended(wide);
    const narrow = batchOf(1, 41 * MS);
    load.sent(narrow, 41 * MS);
    expect(load.explains(narrow.sinceMicros, narrow.dueMicros, 61 * MS, 60 * MS)).toBe(false);
  });
});

test('Redis is lively while it has nothing to do, and for 250 ms after it was given something or answered', () => {
  const load = new RedisLoad();
  expect(load.isLively(1e12)).toBe(true);
  load.sent(batchOf(1, 0), 1000 * MS);
  expect([load.isLively(1249 * MS), load.isLively(1250 * MS)]).toEqual([true, false]);
  load.answered(1300 * MS);
  expect(load.isLively(1400 * MS)).toBe(true);
});
