import { afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { BucketStore } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { redisKey } from '../../src/storage/redis/redis-key.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { redisBenches, takeFrom } from '../support/limiter/test-stores.js';

const SECOND = UNIT_MICROS.second;

/** Properties that only a remote store has: values and lifetimes that other processes see, and a shared clock. */
describe.each(redisBenches())('$name keeps', (bench) => {
  beforeAll(() => bench.start());
  afterEach(() => bench.reset());

  const a = redisKey(takeItem('a', HUNDRED));
  const b = redisKey(takeItem('b', HUNDRED));
  const w = redisKey(takeItem('w', HUNDRED));
  /** Returns the keys of buckets. The probe of a starting store leaves its own key for a second. */
  const bucketKeys = async () =>
    (await bench.redis.keys('*')).filter((key) => !key.endsWith('}probe')).sort();

  test('keys with owner, version and hash tag', () => {
    expect(redisKey({ key: '8:open-api6:tenant4:acme', hashTagLength: 24 })).toBe(
      'weir:1:{248f63fa25507062}8:open-api6:tenant4:acme',
    );
  });

  test('a token bucket as the time it is full', async () => {
    const store = await bench.open();
    const now = bench.clock.wallMicros();
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 30 }));
    expect(await bench.redis.get(a)).toBe(`t1:${now + 3 * SECOND}:0:1`);
    await takeFrom(store, takeItem('b', tokenBucketRate(3, 3, SECOND), { hits: 2 }));
    expect(await bench.redis.get(b)).toBe(`t1:${now + 666_666}:2:3`);
  });

  test('a window as start and count', async () => {
    const store = await bench.open();
    const now = bench.clock.wallMicros();
    const start = now - (now % UNIT_MICROS.hour);
    await takeFrom(store, takeItem('w', windowRate('hour', 5), { hits: 2 }));
    expect(await bench.redis.get(w)).toBe(`w1:${start}:2:${UNIT_MICROS.hour}`);
  });

  test('the time of its decisions, if a log needs it', async () => {
    const options = { clock: () => bench.clock.wallMicros() };
    const timed = await bench.openWith({ ...options, tellsTime: true });
    const other = await bench.openWith(options);
    const now = bench.clock.wallMicros();
    for (const takes of [
      [takeItem('a', HUNDRED)],
      [takeItem('a', HUNDRED), takeItem('w', windowRate('hour', 5))],
    ]) {
      expect((await takeFrom(timed, ...takes))[0]?.decidedMicros).toBe(now);
      expect(await takeFrom(other, ...takes)).not.toContainEqual(
        expect.objectContaining({ decidedMicros: expect.anything() }),
      );
    }
  });

  test('on its own clock, no key that ends before its bucket is full or its window over', async () => {
    const store = await bench.openWith({});
    // Both outlast the test on a slow machine.
    const slow = tokenBucketRate(100, 1, 60 * SECOND);
    for (let i = 0; i < 50; i++) {
      await takeFrom(store, takeItem('a', slow), takeItem('w', windowRate('year', 50)));
      const replies = await bench.redis.multi().get(a).pttl(a).get(w).pttl(w).time().exec();
      const [bucket, bucketTtl, window, windowTtl, time] = (replies ?? []).map(([, value]) => value) as [
        string,
        number,
        string,
        number,
        [string, string],
      ];
      const now = Number(time[0]) * SECOND + Number(time[1]);
      const fullIn = Number(bucket.split(':')[1]) - now;
      const endsIn = Number(window.split(':')[1]) + UNIT_MICROS.year - now;
      for (const [left, ttl] of [
        [fullIn, bucketTtl],
        [endsIn, windowTtl],
      ] as const) {
        // Redis counts whole milliseconds, from a clock that it read before TIME.
        expect(ttl * 1000).toBeGreaterThanOrEqual(left);
        expect(ttl * 1000).toBeLessThanOrEqual(left + SECOND);
      }
    }
  });

  test('nothing of a full bucket, of an empty window, of a look, a denial or a refund of a full bucket', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 0 }), takeItem('b', HUNDRED, { refund: true }));
    await takeFrom(store, takeItem('a', HUNDRED), takeItem('b', HUNDRED, { hits: 101 }));
    expect(await bucketKeys()).toEqual([]);
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 3 }), takeItem('w', windowRate('day', 9)));
    expect(await bucketKeys()).toEqual([a, w].sort());
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 3, refund: true }));
    await takeFrom(store, takeItem('w', windowRate('day', 9), { hits: 1, refund: true }));
    expect(await bucketKeys()).toEqual([]);
  });

  test('a look leaves value and lifetime as they are', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 30 }));
    const value = await bench.redis.get(a);
    await bench.redis.pexpire(a, 100_000);
    await takeFrom(store, takeItem('a', tokenBucketRate(10, 3, SECOND), { hits: 0 }));
    expect(await bench.redis.get(a)).toBe(value);
    expect(await bench.redis.pttl(a)).toBeGreaterThan(90_000);
  });

  test.each([
    ['a later version', 't2:1700000000000000:0:1'],
    ['text', 'hello'],
    ['nothing', ''],
    ['half a value', 't1:1700000000000000:0'],
    ['a negative time', 't1:-5:0:1'],
    ['a q of 0', 't1:1800000000000000:0:0'],
    ['two levels with a q of 0', 'l1:1800000000000000:0:0:1800000000000001:60000000'],
    ['half of two levels', 'l1:1800000000000000:0:1:1800000000000001'],
    ['a surplus of the first edition', 'o1:8800000000000000:500000:0:1'],
    ['a surplus of another limit', 'o1:8800000000000000:500000:2:3'],
  ])('treats %s as absent', async (_, value) => {
    const store = await bench.open();
    await bench.redis.set(a, value);
    expect(await takeFrom(store, takeItem('a', HUNDRED))).toMatchObject([
      { overLimit: false, remaining: 99, waitMicros: 100_000 },
    ]);
    expect(await bench.redis.get(a)).toBe(`t1:${bench.clock.wallMicros() + 100_000}:0:1`);
  });

  test('treats a window with a surplus of the first edition as absent', async () => {
    const store = await bench.open();
    const now = bench.clock.wallMicros();
    await bench.redis.set(w, `g1:${now - (now % UNIT_MICROS.hour)}:7:${UNIT_MICROS.hour}`);
    expect(await takeFrom(store, takeItem('w', windowRate('hour', 5)))).toMatchObject([{ remaining: 4 }]);
  });

  test('treats a list as absent', async () => {
    const store = await bench.open();
    await bench.redis.rpush(a, 'x');
    expect((await takeFrom(store, takeItem('a', HUNDRED)))[0]?.remaining).toBe(99);
  });

  test('clamps a state from a far future to an empty bucket', async () => {
    const store = await bench.open();
    await bench.redis.set(a, 't1:9007199254740991:0:1');
    expect(await takeFrom(store, takeItem('a', HUNDRED))).toMatchObject([
      { overLimit: true, remaining: 0, waitMicros: 100_000 },
    ]);
  });

  test('what is missing beyond the depth of a smaller limit, for all limits', async () => {
    const store = await bench.open();
    const now = bench.clock.wallMicros();
    // One limit is full after an hour, the other after a minute: a changed unit reaches one server after the other.
    const hour = tokenBucketRate(10, 10, UNIT_MICROS.hour);
    const minute = tokenBucketRate(10, 10, UNIT_MICROS.minute);
    const take = async (rate: typeof hour, options = {}) =>
      (await takeFrom(store, takeItem('a', rate, options)))[0];
    expect(await take(hour, { hits: 10 })).toMatchObject({ overLimit: false, remaining: 0 });
    const full = `t1:${now + UNIT_MICROS.hour}:0:1`;
    for (const hits of [0, 1]) {
      expect(await take(minute, { hits })).toMatchObject({ overLimit: true, remaining: 0 });
      expect(await bench.redis.get(a)).toBe(full);
    }
    // Refunds in either limit give back exactly their tokens.
    expect(await take(minute, { hits: 5, refund: true })).toMatchObject({ remaining: 0 });
    expect(await take(hour, { hits: 5, refund: true })).toMatchObject({ remaining: 5 });
    expect(await bench.redis.get(a)).toBe(`t1:${now + UNIT_MICROS.hour / 2 - 30 * SECOND}:0:1`);
    // A reset fills the bucket for all limits.
    const all = { hits: Number.MAX_SAFE_INTEGER, refund: true };
    expect(await take(minute, all)).toMatchObject({ remaining: 10 });
    expect(await bench.redis.get(a)).toBeNull();
  });

  test.each([
    ['as its deepest level', [`:${60 * SECOND}`, 40, 90], 90],
    ['also if a level in the middle is deeper', [`:${60 * SECOND}`, 90, 40], 90],
    ['without the time of levels that ended', [`:${Number.MAX_SAFE_INTEGER}`, 40, 90], 40],
  ] as const)('a bucket with levels of the first edition, %s', async (_, [depth, first, second], seconds) => {
    const store = await bench.open();
    const now = bench.clock.wallMicros();
    await bench.redis.set(a, `l1:${now + first * SECOND}:0:1:${now + second * SECOND}${depth}`);
    const thousand = tokenBucketRate(1000, 10, SECOND);
    const left = 1000 - 10 * seconds;
    expect(await takeFrom(store, takeItem('a', thousand))).toMatchObject([{ remaining: left - 1 }]);
    expect(await bench.redis.get(a)).toBe(`t1:${now + seconds * SECOND + 100_000}:0:1`);
  });

  /** Numbers that weir never writes, from manual changes or memory corruption. */
  const BEYOND = [
    '9007199254740992',
    '9007199254740993',
    '100000000000000000',
    '9'.repeat(30),
    '9'.repeat(400),
  ];
  const THIRDS = tokenBucketRate(3, 3, SECOND);

  test.each([
    ...BEYOND.flatMap((n) => [
      `t1:${n}:0:1`,
      `t1:1700000000000000:${n}:3`,
      `t1:${n}:${n}:${n}`,
      `t1:5:0:${n}`,
      `l1:${n}:0:1:1700000000000001:60000000`,
      `l1:1700000000000000:${n}:3:1700000000000001:60000000`,
      `l1:1700000000000000:0:${n}:1700000000000001:60000000`,
      `l1:1700000000000000:0:1:${n}:60000000`,
      `l1:1700000000000000:0:1:1700000000000001:${n}`,
    ]),
    't1:1700000000000000:3:3',
    't1:1700000000000000:1:1',
  ])('takes the bucket %s for an empty one, whatever asks, and goes on', async (value) => {
    const store = await bench.open();
    for (const rate of [HUNDRED, THIRDS]) {
      const wait = rate === HUNDRED ? 100_000 : 333_334;
      const empty = { overLimit: true, remaining: 0, waitMicros: wait };
      await bench.redis.set(a, value);
      expect(await takeFrom(store, takeItem('a', rate))).toMatchObject([empty]);
      await bench.redis.set(a, value);
      const asked = takeFrom(store, takeItem('a', rate), takeItem('b', HUNDRED));
      // Several takes, a group and a refund all read the same state.
      expect(await asked).toMatchObject([empty, { overLimit: false, remaining: 100 }]);
      await bench.redis.set(a, value);
      expect(await takeFrom(store, takeItem('a', rate, { refund: true }))).toMatchObject([{ remaining: 1 }]);
      await bench.redis.set(a, value);
      const run = await Promise.all([1, 2].map(() => takeFrom(store, takeItem('a', rate))));
      expect(run).toMatchObject([[empty], [empty]]);
      // The state was clamped to its bounds, and refills from now on.
      bench.clock.advance(SECOND);
      expect(await takeFrom(store, takeItem('a', rate))).toMatchObject([{ overLimit: false }]);
    }
    expect(store.connections.closed).toBe(0);
  });

  test.each(
    BEYOND.flatMap((n) => [
      (start: number) => `w1:${start}:${n}:3600000000`,
      () => `w1:${n}:0:3600000000`,
      (start: number) => `w1:${start}:0:${n}`,
      () => `w1:${n}:${n}:${n}`,
    ]).map((value) => [value(0), value] as const),
  )('takes the window %s for one that is used up, until it ends', async (_, written) => {
    const store = await bench.open();
    const rates = [windowRate('hour', 5), windowRate('hour', 5, { maxDebt: 5 })];
    for (const rate of rates) {
      const start = bench.clock.wallMicros() - (bench.clock.wallMicros() % UNIT_MICROS.hour);
      const value = written(start);
      const over = { overLimit: true, remaining: 0 };
      await bench.redis.set(w, value);
      expect(await takeFrom(store, takeItem('w', rate))).toMatchObject([over]);
      await bench.redis.set(w, value);
      expect(await takeFrom(store, takeItem('w', rate), takeItem('b', HUNDRED))).toMatchObject([over, {}]);
      await bench.redis.set(w, value);
      const run = await Promise.all([1, 2].map(() => takeFrom(store, takeItem('w', rate))));
      expect(run).toMatchObject([[over], [over]]);
      bench.clock.advance(2 * UNIT_MICROS.hour);
      expect(await takeFrom(store, takeItem('w', rate))).toMatchObject([{ overLimit: false }]);
    }
    expect(store.connections.closed).toBe(0);
  });

  test('ends a used up window that was written without an end, where nothing else writes it', async () => {
    const store = await bench.openWith({ countDeniedHits: false });
    await bench.redis.set(w, 'w1:99999999999999999999:1:60000000');
    expect(await takeFrom(store, takeItem('w', windowRate('hour', 5)))).toMatchObject([{ overLimit: true }]);
    expect(await bench.redis.pttl(w)).toBeGreaterThan(0);
  });

  test('counts a saturated window to the last, as every reply does', async () => {
    const store = await bench.open();
    const rate = windowRate('hour', 5);
    const most = Number.MAX_SAFE_INTEGER;
    await takeFrom(store, takeItem('w', rate, { hits: most }));
    expect(await takeFrom(store, takeItem('w', rate))).toMatchObject([{ overLimit: true, used: most }]);
    const both = await Promise.all([1, 2].map(() => takeFrom(store, takeItem('w', rate))));
    expect(both).toMatchObject([[{ used: most }], [{ used: most }]]);
    expect(store.connections.closed).toBe(0);
  });

  test('the time when its clock steps back by up to a second, and follows a larger step', async () => {
    const store = await bench.open();
    const take = takeItem('a', HUNDRED);
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 100 }));
    bench.clock.stepWall(-SECOND);
    expect(await takeFrom(store, take)).toMatchObject([
      { overLimit: true, remaining: 0, waitMicros: 100_000 },
    ]);
    bench.clock.stepWall(SECOND + 99_999);
    expect(await takeFrom(store, take)).toMatchObject([{ overLimit: true, remaining: 0, waitMicros: 1 }]);
    bench.clock.stepWall(1);
    expect((await takeFrom(store, take))[0]?.overLimit).toBe(false);
    bench.clock.stepWall(-UNIT_MICROS.day);
    expect(await takeFrom(store, take)).toMatchObject([
      { overLimit: true, remaining: 0, waitMicros: 100_000 },
    ]);
    bench.clock.stepWall(10 * SECOND);
    expect(await takeFrom(store, takeItem('a', HUNDRED, { hits: 0 }))).toMatchObject([{ remaining: 100 }]);
  });

  test(
    'the calendar window of its own clock, however far the callers are off, ' + 'from their first request on',
    async () => {
      const year = windowRate('year', 9, { timeZone: 'Europe/Berlin' });
      const owing = windowRate('year', 5, { timeZone: 'UTC', maxDebt: 5 });
      const ask = async (store: BucketStore) =>
        (
          await takeFrom(
            store,
            takeItem('w', year),
            takeItem('a', owing, { hits: 2 }),
            takeItem('b', HUNDRED),
          )
        ).map(({ overLimit, used }) => ({ overLimit, used }));
      const one = { overLimit: false, used: 1 };
      const realNow = Date.now;
      expect(await ask(await bench.openWith({}))).toEqual([one, { overLimit: false, used: 2 }, one]);
      let used = 1;
      for (const years of [-9, -4, -3, -2, 2, 3, 4, 9]) {
        const off = jest
          .spyOn(Date, 'now')
          .mockImplementation(() => realNow() + years * 365 * UNIT_MICROS.day * 1e-3);
        try {
          used++;
          const [counted, charged] = await ask(await bench.openWith({}));
          expect([years, counted, charged]).toEqual([
            years,
            { overLimit: false, used },
            { overLimit: false, used: Math.min(2 * used, 10) },
          ]);
        } finally {
          off.mockRestore();
        }
      }
      // The key outlives the next window, for which it is stored.
      expect((await bench.redis.pttl(a)) * 1000).toBeGreaterThan(365 * UNIT_MICROS.day);
    },
  );

  test('the calendar window after its clock has stepped by days, with several callers', async () => {
    const stores = [await bench.open(), await bench.open()];
    const day = windowRate('day', 5, { timeZone: 'America/Havana', maxDebt: 5 });
    const ask = async (hits: number, i: number) =>
      (
        await Promise.all([
          takeFrom(stores[i % 2]!, takeItem('w', day, { hits })),
          takeFrom(stores[i % 2]!, takeItem('a', HUNDRED, { hits: 0 })),
        ])
      )[0]![0]!.used;
    const days = [3, 1, 40, -3, -40, 2, -2];
    for (const [i, step] of days.entries()) {
      bench.clock.stepWall(step * UNIT_MICROS.day);
      expect([step, await ask(2, i)]).toEqual([step, 2]);
      expect([step, await ask(2, i + 1)]).toEqual([step, 4]);
    }
  });

  test('one bucket for two stores: together they hand out its tokens once', async () => {
    const stores = [await bench.open(), await bench.open()];
    const results = await Promise.all(
      Array.from({ length: 400 }, (_, i) => takeFrom(stores[i % 2]!, takeItem('a', HUNDRED))),
    );
    expect(results.filter(([outcome]) => outcome?.overLimit === false)).toHaveLength(100);
  });

  test('all or nothing over several buckets, for two stores at once', async () => {
    const stores = [await bench.open(), await bench.open()];
    const requests = Array.from({ length: 300 }, (_, i) => [`t${i % 3}`, `t${(i + 1) % 3}`, `own${i}`]);
    const results = await Promise.all(
      requests.map((keys, i) => takeFrom(stores[i % 2]!, ...keys.map((key) => takeItem(key, HUNDRED)))),
    );
    const taken = new Map<string, number>();
    results.forEach((outcomes, i) => {
      if (outcomes.some((outcome) => outcome.overLimit)) return;
      for (const key of requests[i]!) taken.set(key, (taken.get(key) ?? 0) + 1);
    });
    // Every bucket holds exactly the tokens that the allowed requests left.
    for (const key of new Set(requests.flat())) {
      const [look] = await takeFrom(stores[0]!, takeItem(key, HUNDRED, { hits: 0 }));
      expect([key, look?.remaining]).toEqual([key, 100 - (taken.get(key) ?? 0)]);
    }
    expect([...taken.values()].reduce((sum, count) => sum + count)).toBe(450);
  });

  test('calls few: all takes of one turn travel together, cut by number of keys', async () => {
    const store = await bench.openWith({ keysPerCall: 10 });
    await Promise.all(Array.from({ length: 25 }, (_, i) => takeFrom(store, takeItem(`k${i}`, HUNDRED))));
    expect(store.calls).toBe(3);
    const large = Array.from({ length: 30 }, (_, i) => takeItem(`k${i}`, HUNDRED));
    await Promise.all([takeFrom(store, large[0]!), takeFrom(store, ...large), takeFrom(store, large[1]!)]);
    expect(store.calls).toBe(5);
    // Equal requests use no further buckets but cause work: four charges count as much as one bucket.
    const charge = takeItem('owing', tokenBucketRate(5, 1, SECOND, 5), { hits: 3 });
    await Promise.all(Array.from({ length: 100 }, () => takeFrom(store, charge)));
    expect(store.calls).toBe(8);
  });

  test('calls short: a thousand takes at most, of however few keys, unless one request has more', async () => {
    const store = await bench.open();
    await Promise.all(Array.from({ length: 2500 }, () => takeFrom(store, takeItem('a', HUNDRED))));
    expect(store.calls).toBe(3);
    const large = Array.from({ length: 4000 }, (_, i) => takeItem(`k${i}`, HUNDRED));
    await Promise.all([
      takeFrom(store, takeItem('a', HUNDRED)),
      takeFrom(store, ...large),
      takeFrom(store, takeItem('a', HUNDRED)),
    ]);
    expect(store.calls).toBe(5);
  });
});
