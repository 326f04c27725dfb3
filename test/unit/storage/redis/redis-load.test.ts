import { describe, expect, test } from '@jest/globals';
import type { TakeItem } from '../../../../src/limiter/bucket-store.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { RedisLoad } from '../../../../src/storage/redis/load/redis-load.js';
import { RedisKeys } from '../../../../src/storage/redis/redis-key.js';
import { TakeBatch } from '../../../../src/storage/redis/take-batch.js';
import { holdItem } from '../../../support/limiter/hold-items.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';

const MS = 1000;

/** Returns a call since `sinceMicros`, with one request of `items` items. */
function batchOf(items: number, sinceMicros: number): TakeBatch {
  const batch = new TakeBatch(new RedisKeys(''), true, () => 0, { sinceMicros });
  const takes: TakeItem[] = Array.from({ length: items }, (_, i) => takeItem(`k${i}`, HUNDRED));
  void batch.add(takes, Number.POSITIVE_INFINITY);
  return batch;
}

describe('a late reply', () => {
  test('behind much work is late because of the work, while Redis replies', () => {
    const load = new RedisLoad();
    load.sent(batchOf(4000, 0), 0);
    const narrow = batchOf(1, MS);
    load.sent(narrow, MS);
    expect(load.isDueToWork(narrow, 21 * MS, 20 * MS)).toBe(true);
    // The work does not account for a wait of 1 s.
    expect(load.isDueToWork(narrow, 1001 * MS, 200 * MS)).toBe(false);
    // Redis has not replied for 250 ms.
    expect(load.isDueToWork(narrow, 300 * MS, 251 * MS)).toBe(false);
  });

  test('behind holds of many slots is late because of the work', () => {
    const load = new RedisLoad();
    const holds = new TakeBatch(new RedisKeys(''), true, () => 0, { sinceMicros: 0 });
    const rate = concurrencyRate(100_000);
    for (let i = 0; i < 4; i++) void holds.add([holdItem('slots', rate, { hits: 1000 })], Infinity);
    load.sent(holds, 0);
    const narrow = batchOf(1, MS);
    load.sent(narrow, MS);
    expect(load.isDueToWork(narrow, 21 * MS, 20 * MS)).toBe(true);
  });

  test('from an almost idle Redis is late because of Redis', () => {
    const load = new RedisLoad();
    const batch = batchOf(1, MS);
    load.sent(batch, MS);
    expect(load.isDueToWork(batch, 21 * MS, 20 * MS)).toBe(false);
  });

  test('over a slow network is late because of the network, with any number of calls', () => {
    const load = new RedisLoad();
    const open: TakeBatch[] = [];
    // A call of 5 items in each millisecond, answered 30 ms later: Redis works 10 µs for each item.
    for (let ms = 0; ms < 200; ms++) {
      const batch = batchOf(5, ms * MS);
      load.sent(batch, ms * MS);
      open.push(batch);
      if (open.length <= 30) continue;
      load.answered(ms * MS);
      load.ended(open.shift() as TakeBatch);
      expect(load.isDueToWork(batch, (ms + 15) * MS, (ms + 14) * MS)).toBe(false);
    }
  });

  test('behind many small calls is late because of these', () => {
    const load = new RedisLoad();
    // 350 calls of one item: 15 µs each are more than a quarter of the wait, 10 µs would be less.
    for (let i = 0; i < 349; i++) load.sent(batchOf(1, 0), 0);
    const last = batchOf(1, 0);
    load.sent(last, 0);
    expect(load.isDueToWork(last, 20 * MS, 19 * MS)).toBe(true);
  });

  test('is attributed only to work that is not done', () => {
    const load = new RedisLoad();
    const large = batchOf(4000, 0);
    load.sent(large, 0);
    load.answered(40 * MS);
    load.ended(large);
    const narrow = batchOf(1, 41 * MS);
    load.sent(narrow, 41 * MS);
    expect(load.isDueToWork(narrow, 61 * MS, 60 * MS)).toBe(false);
  });
});

describe('the work of other processes', () => {
  test('explains a wait as far as it was done during the wait', () => {
    const load = new RedisLoad();
    load.addOtherWork(1, 10 * MS, 0);
    const batch = batchOf(1, 8 * MS);
    load.sent(batch, 8 * MS);
    const isExplained = (): boolean => load.isDueToWork(batch, 28 * MS, 27 * MS);
    // 2 of 20 ms.
    expect(isExplained()).toBe(false);
    load.addOtherWork(2, 2 * MS, 9 * MS);
    // 1 of these 50 ms has passed.
    load.addOtherWork(1, 50 * MS, 26 * MS);
    expect(isExplained()).toBe(true);
    const next = batchOf(1, 27 * MS);
    load.sent(next, 27 * MS);
    expect(load.isDueToWork(next, 47 * MS, 31 * MS)).toBe(false);
    expect(load.isDueToWork(next, 47 * MS, 46 * MS)).toBe(true);
  });

  test('is reported when it exceeds the reported work by two milliseconds', () => {
    const reported: number[] = [];
    const load = new RedisLoad((micros) => reported.push(micros));
    // 25 µs for each item of a large request, 10 for each of a small one, 5 for the call.
    load.sent(batchOf(79, 0), 0);
    expect(reported).toEqual([]);
    load.sent(batchOf(1, 0), 0);
    expect(reported).toEqual([]);
    load.sent(batchOf(79, MS), MS);
    expect(reported).toEqual([2 * (79 * 25 + 5) + 15 - 1000]);
    load.sent(batchOf(79, MS), MS);
    expect(reported.length).toBe(1);
    // The reported work has ended.
    load.sent(batchOf(81, 100 * MS), 100 * MS);
    expect(reported.length).toBe(2);
  });
});

test('Redis is responsive while it is idle, and for 250 ms after its last reply or its first call', () => {
  const load = new RedisLoad();
  expect(load.isResponsive(1e12)).toBe(true);
  load.sent(batchOf(1, 0), 1000 * MS);
  expect([load.isResponsive(1249 * MS), load.isResponsive(1250 * MS)]).toEqual([true, false]);
  load.answered(1300 * MS);
  expect(load.isResponsive(1400 * MS)).toBe(true);
});

describe('the estimated wait of a call', () => {
  test('is zero before the first reply, and while Redis is idle', () => {
    const load = new RedisLoad();
    expect(load.queueMicros(0)).toBe(0);
    const batch = batchOf(4000, 0);
    load.sent(batch, 0);
    expect(load.queueMicros(0)).toBe(0);
    load.replied(batch, 10 * MS);
    load.ended(batch);
    expect(load.queueMicros(10 * MS)).toBe(0);
  });

  test('is the time of the work before it, at the pace of recent replies', () => {
    const load = new RedisLoad();
    // Requests with four items take at most 45 µs; this Redis takes 10 µs.
    const calls = Array.from({ length: 100 }, () => batchOf(4, 0));
    for (const call of calls) load.sent(call, 1);
    expect(load.queueMicros(1)).toBe(0);
    let nowMicros = 1;
    for (const call of calls.slice(0, 60)) {
      nowMicros += 10;
      load.replied(call, nowMicros);
      load.ended(call);
    }
    expect(load.queueMicros(nowMicros)).toBeCloseTo(40 * 10);
    // Unanswered work of that time may be on its way.
    expect(load.queueMicros(nowMicros + 4000)).toBe(0);
  });

  test('is that of large requests, over a slow network and next to many small requests', () => {
    const load = new RedisLoad();
    const wayMicros = 6 * MS;
    const itemMicros = 5;
    const answers: { batch: TakeBatch; atMicros: number }[] = [];
    let idleMicros = 0;
    let longest = 0;
    const send = (items: number, nowMicros: number): void => {
      const batch = batchOf(items, nowMicros);
      load.sent(batch, nowMicros);
      // Redis executes one call after the other.
      idleMicros = Math.max(idleMicros, nowMicros + wayMicros / 2) + items * itemMicros;
      answers.push({ batch, atMicros: idleMicros + wayMicros / 2 });
    };
    // A small request every 0.5 ms, and a request with 1,500 limits every 300 ms.
    for (let nowMicros = 0; nowMicros < 2000 * MS; nowMicros += MS / 2) {
      while ((answers[0]?.atMicros ?? Infinity) <= nowMicros) {
        const { batch, atMicros } = answers.shift()!;
        load.replied(batch, atMicros);
        load.ended(batch);
      }
      if (nowMicros % (300 * MS) === 100 * MS) send(1500, nowMicros);
      send(1, nowMicros);
      if (nowMicros > 500 * MS) longest = Math.max(longest, load.queueMicros(nowMicros));
    }
    // The large request takes Redis 7.5 ms, and its maximum is 37 ms.
    expect(longest).toBeGreaterThan(5 * MS);
    expect(longest).toBeLessThan(12 * MS);
  });

  test('never exceeds the wait for the slowest possible Redis', () => {
    const load = new RedisLoad();
    const calls = Array.from({ length: 3 }, () => batchOf(4, 0));
    for (const call of calls) load.sent(call, 1);
    // This process was blocked for 1 s.
    for (const call of calls.slice(0, 2)) {
      load.replied(call, 1000 * MS);
      load.ended(call);
    }
    for (let i = 0; i < 10; i++) load.sent(batchOf(4, 0), 1000 * MS);
    expect(load.queueMicros(1000 * MS)).toBeLessThanOrEqual(11 * 45);
  });
});
