import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Take, TakeOutcome } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { clusterBenches } from '../support/limiter/cluster-bench.js';
import { holdItem } from '../support/limiter/hold-items.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { memoryBench, redisBenches, type TestBench, takeFrom } from '../support/limiter/test-stores.js';

const SECOND = UNIT_MICROS.second;
const PER_MINUTE = windowRate('minute', 5);
const benches: TestBench[] = [memoryBench(), ...redisBenches(), ...clusterBenches()];

type Told = Pick<TakeOutcome, 'overLimit' | 'remaining' | 'waitMicros'>;
const ok = (remaining: number, waitMicros: number): Told => ({
  overLimit: false,
  remaining,
  waitMicros,
});
const limited = (remaining: number, waitMicros: number): Told => ({
  overLimit: true,
  remaining,
  waitMicros,
});

describe.each(benches)('BucketStore in $name', (bench) => {
  beforeAll(() => bench.start());
  afterEach(() => bench.reset());

  /** Microseconds until the minute ends. */
  const minuteLeft = () => UNIT_MICROS.minute - (bench.clock.wallMicros() % UNIT_MICROS.minute);

  test('a concurrency limit can be read, and only settlements give slots back', async () => {
    const store = await bench.open();
    const slots = concurrencyRate(10);
    await takeFrom(store, holdItem('a', slots, { hits: 3 }));
    for (const hits of [0, 2]) {
      const [outcome] = await takeFrom(store, takeItem('a', slots, { hits, refund: true }));
      expect(outcome).toMatchObject({ overLimit: false, remaining: 7, used: 3 });
    }
  });

  test('of 200 hits on a full bucket 100 pass, a second later 10 of 100', async () => {
    const store = await bench.open();
    const burst = async (hits: number) => {
      const results = await Promise.all(
        Array.from({ length: hits }, () => takeFrom(store, takeItem('burst', HUNDRED))),
      );
      return results.filter(([outcome]) => outcome?.overLimit === false).length;
    };
    expect(await burst(200)).toBe(100);
    bench.clock.advance(SECOND);
    expect(await burst(100)).toBe(10);
  });

  test('reports what is left and when the next token comes', async () => {
    const store = await bench.open();
    const take = takeItem('a', HUNDRED);
    expect(await takeFrom(store, take)).toMatchObject([ok(99, 100_000)]);
    bench.clock.advance(50_000);
    expect(await takeFrom(store, take)).toMatchObject([ok(98, 50_000)]);
    expect(await takeFrom(store, takeItem('a', HUNDRED, { hits: 98 }))).toMatchObject([ok(0, 50_000)]);
    expect(await takeFrom(store, take)).toMatchObject([limited(0, 50_000)]);
    expect(await takeFrom(store, takeItem('a', HUNDRED, { hits: 3 }))).toMatchObject([limited(0, 250_000)]);
    bench.clock.advance(49_999);
    expect(await takeFrom(store, take)).toMatchObject([limited(0, 1)]);
    bench.clock.advance(1);
    expect(await takeFrom(store, take)).toMatchObject([ok(0, 100_000)]);
  });

  test('a bucket never holds more than its capacity', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 100 }));
    bench.clock.advance(UNIT_MICROS.day);
    expect(await takeFrom(store, takeItem('a', HUNDRED, { hits: 0 }))).toMatchObject([ok(100, 0)]);
  });

  test('hits above the capacity never pass: what is there stays, the wait is until full', async () => {
    const store = await bench.open();
    expect(await takeFrom(store, takeItem('a', HUNDRED, { hits: 101 }))).toMatchObject([limited(100, 0)]);
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 30 }));
    const most = takeItem('a', HUNDRED, { hits: Number.MAX_SAFE_INTEGER });
    expect(await takeFrom(store, most)).toMatchObject([limited(70, 3 * SECOND)]);
  });

  test('a peek says whether one more fits, and takes nothing', async () => {
    const store = await bench.open();
    const peek = takeItem('a', HUNDRED, { hits: 0 });
    expect(await takeFrom(store, peek)).toMatchObject([ok(100, 0)]);
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 100 }));
    expect(await takeFrom(store, peek)).toMatchObject([limited(0, 100_000)]);
    bench.clock.advance(100_000);
    expect(await takeFrom(store, peek)).toMatchObject([ok(1, 100_000)]);
    expect(await takeFrom(store, peek)).toMatchObject([ok(1, 100_000)]);
  });

  test('a refund gives back up to full and is never limited', async () => {
    const store = await bench.open();
    const refund = (hits: number) => takeItem('a', HUNDRED, { hits, refund: true });
    expect(await takeFrom(store, refund(5))).toMatchObject([ok(100, 0)]);
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 100 }));
    expect(await takeFrom(store, refund(0))).toMatchObject([ok(0, 100_000)]);
    expect(await takeFrom(store, refund(7))).toMatchObject([ok(7, 100_000)]);
    expect(await takeFrom(store, refund(Number.MAX_SAFE_INTEGER))).toMatchObject([ok(100, 0)]);
    expect(await takeFrom(store, takeItem('a', HUNDRED))).toMatchObject([ok(99, 100_000)]);
  });

  test('a refund never makes a bucket hold more than its limit, whatever was granted', async () => {
    const store = await bench.open();
    const grant = takeItem('a', HUNDRED, { hits: 500, refund: true });
    expect(await takeFrom(store, grant)).toMatchObject([ok(100, 0)]);
    const one = () => takeFrom(store, takeItem('a', HUNDRED));
    const passed = async () => {
      const results = await Promise.all(Array.from({ length: 700 }, one));
      return results.filter(([outcome]) => outcome?.overLimit === false).length;
    };
    expect(await passed()).toBe(100);
    expect(await takeFrom(store, grant)).toMatchObject([ok(100, 0)]);
    expect(await passed()).toBe(100);
    const window = takeItem('w', PER_MINUTE, { hits: 500, refund: true });
    expect(await takeFrom(store, window)).toMatchObject([ok(5, minuteLeft())]);
  });

  test('a denied request takes nothing from the buckets that had room', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('empty', HUNDRED, { hits: 100 }), takeItem('some', HUNDRED, { hits: 40 }));
    const request = [takeItem('some', HUNDRED), takeItem('empty', HUNDRED), takeItem('full', HUNDRED)];
    expect(await takeFrom(store, ...request)).toMatchObject([
      ok(60, 100_000),
      limited(0, 100_000),
      ok(100, 0),
    ]);
    expect(await takeFrom(store, takeItem('some', HUNDRED, { hits: 0 }))).toMatchObject([ok(60, 100_000)]);
  });

  test('a denied request changes nothing: refunds neither', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('empty', HUNDRED, { hits: 100 }), takeItem('some', HUNDRED, { hits: 40 }));
    await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 3 }));
    const outcomes = await takeFrom(
      store,
      takeItem('some', HUNDRED, { hits: 10, refund: true }),
      takeItem('w', PER_MINUTE, { hits: 2, refund: true }),
      takeItem('empty', HUNDRED),
    );
    expect(outcomes).toMatchObject([ok(60, 100_000), ok(2, minuteLeft()), limited(0, 100_000)]);
    expect(await takeFrom(store, takeItem('some', HUNDRED, { hits: 0 }))).toMatchObject([ok(60, 100_000)]);
  });

  test('the same bucket twice must hold the sum', async () => {
    const store = await bench.open();
    const two = (first: number, second: number): Take[] => [
      takeItem('a', HUNDRED, { hits: first }),
      takeItem('a', HUNDRED, { hits: second }),
    ];
    expect(await takeFrom(store, ...two(30, 20))).toMatchObject([ok(70, 100_000), ok(50, 100_000)]);
    // 30 tokens fit, and 30 more do not: 20 remain, so 10 are missing. The first item reports the unchanged bucket.
    expect(await takeFrom(store, ...two(30, 30))).toMatchObject([ok(50, 100_000), limited(20, SECOND)]);
    expect(await takeFrom(store, ...two(25, 25))).toMatchObject([ok(25, 100_000), ok(0, 100_000)]);
  });

  test('a request of as many limits as MAX_LIMITS allows is decided as one', async () => {
    const store = await bench.open();
    const [limits, keys] = [256, 200];
    const takes = Array.from({ length: limits }, (_, i) => takeItem(`k${i % keys}`, HUNDRED, { hits: 60 }));
    const outcomes = await takeFrom(store, ...takes);
    expect(outcomes).toHaveLength(limits);
    // The first keys occur twice.
    expect(outcomes.filter((outcome) => outcome.overLimit)).toHaveLength(limits - keys);
    expect(outcomes[0]).toMatchObject(ok(100, 0));
    const fitting = await takeFrom(store, ...takes.slice(0, keys));
    expect(fitting.every((outcome) => !outcome.overLimit && outcome.remaining === 40)).toBe(true);
  });

  test('observed buckets never deny and give nothing they do not have', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('watched', HUNDRED, { hits: 95 }));
    const request = [
      takeItem('watched', HUNDRED, { hits: 10, enforcement: 'observe' }),
      takeItem('b', HUNDRED),
    ];
    expect(await takeFrom(store, ...request)).toMatchObject([limited(5, 500_000), ok(99, 100_000)]);
    expect(await takeFrom(store, takeItem('watched', HUNDRED, { hits: 0 }))).toMatchObject([ok(5, 100_000)]);
  });

  test('quota buckets deny only when all of them are over', async () => {
    const store = await bench.open();
    const quota = (key: string) => takeItem(key, HUNDRED, { hits: 60, enforcement: 'quota' });
    await takeFrom(store, quota('over'));
    expect(await takeFrom(store, quota('over'), quota('fits'), takeItem('other', HUNDRED))).toMatchObject([
      limited(40, 2 * SECOND),
      ok(40, 100_000),
      ok(99, 100_000),
    ]);
    expect(await takeFrom(store, quota('over'), quota('fits'), takeItem('other', HUNDRED))).toMatchObject([
      limited(40, 2 * SECOND),
      limited(40, 2 * SECOND),
      ok(99, 100_000),
    ]);
  });

  test('a window is aligned to the epoch and begins afresh', async () => {
    const store = await bench.open();
    bench.clock.advance(minuteLeft() - 10 * SECOND);
    expect(await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 5 }))).toMatchObject([ok(0, 10 * SECOND)]);
    expect(await takeFrom(store, takeItem('w', PER_MINUTE))).toMatchObject([limited(0, 10 * SECOND)]);
    expect(await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 2, refund: true }))).toMatchObject([
      // The denied hit counted: 6 - 2.
      ok(1, 10 * SECOND),
    ]);
    bench.clock.advance(10 * SECOND);
    expect(await takeFrom(store, takeItem('w', PER_MINUTE))).toMatchObject([ok(4, 60 * SECOND)]);
  });

  test('a peek at a window is OK exactly at the limit and counts nothing', async () => {
    const store = await bench.open();
    const peek = takeItem('w', PER_MINUTE, { hits: 0 });
    await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 5 }));
    expect(await takeFrom(store, peek)).toMatchObject([ok(0, minuteLeft())]);
    await takeFrom(store, takeItem('w', PER_MINUTE));
    expect(await takeFrom(store, peek)).toMatchObject([limited(0, minuteLeft())]);
  });

  test('windows count the hits of a denied request, the limited one and the others', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('empty', HUNDRED, { hits: 100 }));
    const request = [takeItem('w', PER_MINUTE, { hits: 2 }), takeItem('empty', HUNDRED)];
    expect((await takeFrom(store, ...request))[0]).toMatchObject(ok(3, minuteLeft()));
    expect((await takeFrom(store, ...request))[0]).toMatchObject(ok(1, minuteLeft()));
    expect((await takeFrom(store, ...request))[0]).toMatchObject(limited(0, minuteLeft()));
    expect(await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 4, refund: true }))).toMatchObject([
      ok(3, minuteLeft()),
    ]);
  });

  test('with countDeniedHits off a denied request counts in no window', async () => {
    const store = await bench.open({ countDeniedHits: false });
    await takeFrom(store, takeItem('empty', HUNDRED, { hits: 100 }));
    const request = [takeItem('w', PER_MINUTE, { hits: 2 }), takeItem('empty', HUNDRED)];
    expect((await takeFrom(store, ...request))[0]).toMatchObject(ok(5, minuteLeft()));
    expect(await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 6 }))).toMatchObject([
      limited(0, minuteLeft()),
    ]);
    expect(await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 5 }))).toMatchObject([
      ok(0, minuteLeft()),
    ]);
  });

  test('the same window twice reports the running count', async () => {
    const store = await bench.open();
    const two = [takeItem('w', PER_MINUTE, { hits: 3 }), takeItem('w', PER_MINUTE, { hits: 3 })];
    expect(await takeFrom(store, ...two)).toMatchObject([ok(2, minuteLeft()), limited(0, minuteLeft())]);
    expect(await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 2, refund: true }))).toMatchObject([
      ok(1, minuteLeft()),
    ]);
  });

  test('tells what was counted, also in requests that travel together', async () => {
    const hit = takeItem('w', PER_MINUTE, { hits: 2 });
    const used = async (countDeniedHits: boolean) => {
      await bench.reset();
      const store = await bench.open({ countDeniedHits });
      const all = await Promise.all(Array.from({ length: 4 }, () => takeFrom(store, hit)));
      return all.map(([outcome]) => [outcome?.overLimit, outcome?.used]);
    };
    expect(await used(true)).toEqual([
      [false, 2],
      [false, 4],
      [true, 6],
      [true, 8],
    ]);
    expect(await used(false)).toEqual([
      [false, 2],
      [false, 4],
      [true, 4],
      [true, 4],
    ]);
    const store = await bench.open();
    const tokens = await takeFrom(store, takeItem('a', HUNDRED, { hits: 30 }));
    expect(tokens).toMatchObject([{ remaining: 70, used: 30, cached: false }]);
  });

  test('counts saturate, refunds end at 0', async () => {
    const store = await bench.open();
    const huge = takeItem('w', PER_MINUTE, { hits: Number.MAX_SAFE_INTEGER });
    expect(await takeFrom(store, huge)).toMatchObject([limited(0, minuteLeft())]);
    expect(await takeFrom(store, huge)).toMatchObject([limited(0, minuteLeft())]);
    const back = takeItem('w', PER_MINUTE, { hits: Number.MAX_SAFE_INTEGER - 1, refund: true });
    expect(await takeFrom(store, back)).toMatchObject([ok(4, minuteLeft())]);
    expect(await takeFrom(store, back)).toMatchObject([ok(5, minuteLeft())]);
  });

  test('a window of another unit under the same key begins afresh, another limit does not', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('w', PER_MINUTE, { hits: 5 }));
    expect((await takeFrom(store, takeItem('w', windowRate('minute', 7))))[0]?.remaining).toBe(1);
    expect((await takeFrom(store, takeItem('w', windowRate('day', 7))))[0]?.remaining).toBe(6);
  });

  test('another kind of limit under the same key begins afresh', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('a', PER_MINUTE, { hits: 5 }));
    expect(await takeFrom(store, takeItem('a', HUNDRED))).toMatchObject([ok(99, 100_000)]);
    expect((await takeFrom(store, takeItem('a', PER_MINUTE)))[0]?.remaining).toBe(4);
  });

  test('after a change of limit the stored state is read under the new one', async () => {
    const store = await bench.open();
    await takeFrom(store, takeItem('a', HUNDRED, { hits: 100 }));
    // Full in 10 s. At 1 token a second, 10 of 50 tokens are missing.
    const slower = tokenBucketRate(50, 1, SECOND);
    expect(await takeFrom(store, takeItem('a', slower, { hits: 0 }))).toMatchObject([ok(40, SECOND)]);
    // The peek changed nothing.
    expect(await takeFrom(store, takeItem('a', HUNDRED, { hits: 0 }))).toMatchObject([limited(0, 100_000)]);
    // The new limit is full in one second, so 10 s is below empty. The state stays as it is, because another server may
    // still use the larger limit.
    const faster = tokenBucketRate(10, 10, SECOND);
    expect(await takeFrom(store, takeItem('a', faster))).toMatchObject([limited(0, 100_000)]);
    bench.clock.advance(100_000);
    expect(await takeFrom(store, takeItem('a', faster, { hits: 0 }))).toMatchObject([limited(0, 100_000)]);
    expect(await takeFrom(store, takeItem('a', slower))).toMatchObject([ok(39, 900_000)]);
    // The larger limit is full 11 s after the first take, and the smaller one has its first token 0.9 s before.
    bench.clock.advance(10_000_000 - 1);
    expect(await takeFrom(store, takeItem('a', faster, { hits: 0 }))).toMatchObject([limited(0, 1)]);
    bench.clock.advance(1);
    expect(await takeFrom(store, takeItem('a', faster, { hits: 0 }))).toMatchObject([ok(1, 100_000)]);
  });

  test('carries are exact: 3 tokens a second', async () => {
    const store = await bench.open();
    const rate = tokenBucketRate(3, 3, SECOND);
    expect(await takeFrom(store, takeItem('a', rate))).toMatchObject([ok(2, 333_334)]);
    expect(await takeFrom(store, takeItem('a', rate, { hits: 2 }))).toMatchObject([ok(0, 333_334)]);
    bench.clock.advance(333_333);
    expect(await takeFrom(store, takeItem('a', rate))).toMatchObject([limited(0, 1)]);
    bench.clock.advance(1);
    expect(await takeFrom(store, takeItem('a', rate))).toMatchObject([ok(0, 333_333)]);
    bench.clock.advance(666_666);
    expect(await takeFrom(store, takeItem('a', rate, { hits: 2 }))).toMatchObject([ok(0, 333_334)]);
  });

  test('more than one token a microsecond is still a limit', async () => {
    const store = await bench.open();
    const rate = tokenBucketRate(4_000_000_000, 4_000_000_000, 1_000);
    const some = takeItem('a', rate, { hits: 3_999_999_999 });
    expect(await takeFrom(store, some)).toMatchObject([ok(1, 1)]);
    expect(await takeFrom(store, takeItem('a', rate, { hits: 2 }))).toMatchObject([limited(1, 1)]);
    expect(await takeFrom(store, takeItem('a', rate))).toMatchObject([ok(0, 1)]);
    bench.clock.advance(1);
    expect(await takeFrom(store, takeItem('a', rate, { hits: 4_000_000 }))).toMatchObject([ok(0, 1)]);
  });
});
