import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  type BucketStore,
  type LocalTake,
  StorageError,
  type TakeItem,
  type TakeOutcome,
} from '../../../../src/limiter/bucket-store.js';
import type { StoreFailurePolicy } from '../../../../src/limiter/failure-policy.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import { LocalBuckets, type LocalBucketsOptions } from '../../../../src/storage/local/local-buckets.js';
import { MAX_CONCURRENT_CHARGES } from '../../../../src/storage/local/repayment.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { holdItem, oldestItem, settlementItem } from '../../../support/limiter/hold-items.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { type ItemOptions, takeItem } from '../../../support/limiter/take-items.js';

const HOUR = 3_600_000_000;
const EIGHT = tokenBucketRate(8, 8, HOUR);

const item = (
  key: string,
  options: ItemOptions = {},
  onStoreFailure: StoreFailurePolicy = 'local',
  rate: TakeItem['rate'] = EIGHT,
): LocalTake => ({ ...takeItem(key, rate, options), onStoreFailure });

/** A store that becomes available. It may fail, reply or hang, and counts its calls. */
class BackStore implements BucketStore {
  readonly memory: MemoryStore;
  readonly asked: TakeItem[] = [];
  /** Maximum number of concurrent takes. */
  maxConcurrent = 0;
  #waiting = 0;
  failing: StorageError | undefined;
  /** Whether the store decides, but reports a failure. */
  reportsFailure = false;
  /** Whether the store never replies. */
  silent = false;

  constructor(clock: FakeClock) {
    this.memory = new MemoryStore({ ...MEMORY, clock });
  }

  take(items: readonly TakeItem[]): ReturnType<BucketStore['take']> {
    this.asked.push(...items);
    if (this.silent) return new Promise(() => {});
    if (this.failing !== undefined) return Promise.resolve(this.failing);
    const outcomes = this.memory.take(items);
    const { reportsFailure } = this;
    this.maxConcurrent = Math.max(this.maxConcurrent, ++this.#waiting);
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#waiting--;
        resolve(reportsFailure ? new StorageError('timeout', 'late') : outcomes);
      });
    });
  }

  async close(): Promise<void> {}
}

const open: LocalBuckets[] = [];
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  jest.useRealTimers();
});

/** Advances the time until `isSo` returns true. */
async function until(what: string, isSo: () => boolean): Promise<void> {
  for (let seconds = 0; !isSo(); seconds += 0.01) {
    if (seconds > 20) throw new Error(`waited 20 s for ${what}`);
    await jest.advanceTimersByTimeAsync(10);
  }
}

function setUp(options: Partial<LocalBucketsOptions> = {}) {
  const clock = new FakeClock();
  const store = new BackStore(clock);
  const state = { up: false };
  const said: string[] = [];
  const local = new LocalBuckets({
    newStore: () => new MemoryStore({ ...MEMORY, clock }),
    clock,
    workers: 1,
    maxBuckets: 1000,
    maxBytes: 1_000_000,
    store,
    up: () => state.up,
    anyUp: () => state.up,
    log: (_, message) => said.push(message),
    ...options,
  });
  open.push(local);
  const back = () => {
    state.up = true;
    local.storeIsUp();
  };
  const paid = () => until('all to be charged', () => local.stats.waiting === 0);
  const left = (key: string, rate: TakeItem['rate'] = EIGHT) =>
    store.memory.take([takeItem(key, rate, { hits: 0 })])[0]?.remaining;
  return { clock, store, state, said, local, back, paid, left };
}

describe('local buckets', () => {
  test('have a share of the limit, divided among the workers, and report the whole limit', () => {
    const { local } = setUp({ workers: 2 });
    const take = () => local.take([item('a', {}, { local: 0.5 })])[0];
    expect(take()).toMatchObject({ limited: false, remaining: 1, used: 7 });
    expect(take()).toMatchObject({ limited: false, remaining: 0, used: 8 });
    expect(take()).toMatchObject({ limited: true, remaining: 0, used: 8 });
    // `local` without a share means the whole limit, and each of two workers has half of it.
    for (let hits = 0; hits < 4; hits++) expect(local.take([item('b')])[0]?.limited).toBe(false);
    expect(local.take([item('b')])[0]?.limited).toBe(true);
  });

  test('have separate shares of the limits of one request, and are decided together', () => {
    const { local, back, paid, left } = setUp();
    const both = () => local.take([item('a', {}, { local: 0.25 }), item('b', {}, { local: 0.5 })]);
    expect(both().map(({ limited }) => limited)).toEqual([false, false]);
    expect(both().map(({ limited }) => limited)).toEqual([false, false]);
    expect(both().map(({ limited, remaining }) => [limited, remaining])).toEqual([
      [true, 0],
      [false, 2],
    ]);
    back();
    // A denied take took nothing.
    return paid().then(() => expect([left('a'), left('b')]).toEqual([6, 6]));
  });
});

describe('local holds', () => {
  const local = (one: TakeItem, onStoreFailure: StoreFailurePolicy = 'local'): LocalTake => ({
    ...one,
    onStoreFailure,
  });
  const start = (one: LocalBuckets, taken: TakeItem) => one.take([local(taken)])[0] as TakeOutcome;
  const settle = (one: LocalBuckets, taken: TakeItem, outcome: TakeOutcome, used = 0) =>
    one.take([local(settlementItem(taken, outcome, used))])[0]?.hold;

  test('of concurrent requests are a share of the slots, are settled locally and charged to nobody', async () => {
    const { local: buckets, store, state, back } = setUp();
    const slots = () => holdItem('slots', concurrencyRate(8));
    const takes = [slots(), slots(), slots()];
    const outcomes = takes.map((taken) => buckets.take([local(taken, { local: 0.25 })])[0] as TakeOutcome);
    expect(outcomes).toMatchObject([
      { limited: false, hold: 'placed', remaining: 1, used: 7 },
      { limited: false, hold: 'placed', remaining: 0, used: 8 },
      { limited: true },
    ]);
    back();
    expect(state.up).toBe(true);
    const ended = settlementItem(takes[0] as TakeItem, outcomes[0] as TakeOutcome);
    expect(buckets.take([local(ended, { local: 0.25 })])).toMatchObject([{ hold: 'settled' }]);
    expect(buckets.take([local(ended, { local: 0.25 })])).toMatchObject([{ hold: 'unknown' }]);
    expect(buckets.stats).toEqual({ waiting: 0, charged: 0, lapsed: 0, forgotten: 0 });
    expect(store.asked).toEqual([]);
  });

  test('of a bucket owe their use once they are settled, and their estimate before', async () => {
    const { local: buckets, back, paid, left } = setUp();
    const takes = ['less', 'more', 'held', 'twice'].map((key) => holdItem(key, EIGHT, { hits: 4 }));
    const [less, more, , twice] = takes.map((taken) => start(buckets, taken)) as TakeOutcome[];
    expect(settle(buckets, takes[0] as TakeItem, less as TakeOutcome, 1)).toBe('settled');
    expect(settle(buckets, takes[1] as TakeItem, more as TakeOutcome, 6)).toBe('settled');
    expect(settle(buckets, takes[3] as TakeItem, twice as TakeOutcome, 1)).toBe('settled');
    expect(settle(buckets, takes[3] as TakeItem, twice as TakeOutcome, 1)).toBe('unknown');
    back();
    await paid();
    expect(['less', 'more', 'held', 'twice'].map((key) => left(key))).toEqual([7, 2, 4, 7]);
    // The bucket in Redis keeps the estimate that it was charged for.
    const held = takes[2] as TakeItem;
    expect(settle(buckets, held, { ...(more as TakeOutcome), fullMicros: less?.fullMicros ?? 0 }, 1)).toBe(
      'settled',
    );
    expect(left('held')).toBe(4);
  });

  test('of a window correct what the store was charged for their estimates, in the same window', async () => {
    const { local: buckets, clock, back, paid, left, store } = setUp();
    const day = windowRate('day', 100);
    const hold = (key: string) => holdItem(key, day, { hits: 40 });
    const [less, more, full, late] = ['less', 'more', 'full', 'late'].map(hold) as [
      TakeItem,
      TakeItem,
      TakeItem,
      TakeItem,
    ];
    const outcomes = [less, more, full, late].map((taken) => start(buckets, taken)) as TakeOutcome[];
    const end = (at: number, used: number) =>
      settle(buckets, [less, more, full, late][at] as TakeItem, outcomes[at] as TakeOutcome, used);
    // The window has room for 30 of the 40 hits.
    store.memory.take([takeItem('full', day, { hits: 70 })]);
    back();
    await paid();
    const lefts = () => ['less', 'more', 'full', 'late'].map((key) => left(key, day));
    expect(lefts()).toEqual([60, 60, 0, 60]);
    expect([end(0, 15), end(1, 50), end(2, 15)]).toEqual(['settled', 'settled', 'settled']);
    await paid();
    expect(lefts()).toEqual([85, 50, 15, 60]);
    // Later local hits are charged in addition.
    start(buckets, hold('less'));
    await paid();
    expect(lefts()).toEqual([45, 50, 15, 60]);
    clock.advance(86_400_000_000);
    expect(end(3, 0)).toBe('unknown');
    await paid();
    expect(lefts()).toEqual([100, 100, 100, 100]);
  });

  test('of a window that has ended correct nothing', async () => {
    const { local: buckets, clock, back, paid, left } = setUp();
    const minute = windowRate('minute', 100);
    const taken = holdItem('a', minute, { hits: 40 });
    const outcome = start(buckets, taken);
    clock.advance(59_000_000);
    start(buckets, takeItem('a', minute, { hits: 30 }));
    expect(settle(buckets, taken, outcome, 0)).toBe('settled');
    back();
    await paid();
    expect(left('a', minute)).toBe(70);
  });

  test('of a window that has ended correct nothing if they are settled as the oldest', async () => {
    const { local: buckets, clock, back, paid, left } = setUp();
    const minute = windowRate('minute', 100);
    const taken = holdItem('a', minute, { hits: 40 });
    start(buckets, taken);
    clock.advance(59_000_000);
    start(buckets, takeItem('a', minute, { hits: 30 }));
    expect(buckets.take([local(oldestItem(taken, 10))])).toMatchObject([{ hold: 'settled', heldHits: 40 }]);
    back();
    await paid();
    expect(left('a', minute)).toBe(70);
  });

  test('of a window are refunded once, also if the store does not answer', async () => {
    const { local: buckets, back, paid, left, store, clock } = setUp();
    const day = windowRate('day', 100);
    const taken = holdItem('a', day, { hits: 40 });
    const outcome = start(buckets, taken);
    store.failing = new StorageError('disconnected', 'down', { unsent: true });
    back();
    await until('a failed charge', () => store.asked.length > 0);
    expect(settle(buckets, taken, outcome, 30)).toBe('settled');
    store.failing = undefined;
    await paid();
    expect(left('a', day)).toBe(70);
    const second = holdItem('a', day, { hits: 40 });
    const next = start(buckets, second);
    await paid();
    expect(left('a', day)).toBe(30);
    store.reportsFailure = true;
    expect(settle(buckets, second, next, 10)).toBe('settled');
    const asked = store.asked.length;
    await until('the refund', () => store.asked.length > asked);
    store.reportsFailure = false;
    clock.advance(10_000_000);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(left('a', day)).toBe(60);
    expect(store.asked.filter(({ refund }) => refund)).toHaveLength(1);
  });

  test('last until they expire, however long the store is available', async () => {
    const { local: buckets, clock, back } = setUp();
    const slots = () => holdItem('slots', concurrencyRate(1), { lifetimeMillis: 60_000 });
    expect(start(buckets, slots()).limited).toBe(false);
    // Local buckets without holds are forgotten after this time.
    start(buckets, takeItem('a', EIGHT));
    back();
    clock.advance(59_000_000);
    await jest.advanceTimersByTimeAsync(59_000);
    expect(start(buckets, slots()).limited).toBe(true);
    clock.advance(1_000_000);
    expect(start(buckets, slots()).limited).toBe(false);
  });
});

describe('after the store is available again', () => {
  test('allowed hits are charged, until the bucket is empty', async () => {
    const { local, store, back, paid, left, said } = setUp();
    store.memory.take([takeItem('b', EIGHT, { hits: 6 })]);
    local.take([item('a', { hits: 3 })]);
    local.take([item('a', { hits: 2 })]);
    local.take([item('b', { hits: 5 })]);
    local.take([item('c', { hits: 9 })]);
    local.take([item('d', { hits: 0 })]);
    expect(local.stats).toEqual({ waiting: 2, charged: 0, lapsed: 0, forgotten: 0 });
    expect(store.asked).toEqual([]);
    back();
    await paid();
    expect([left('a'), left('b'), left('c')]).toEqual([3, 0, 8]);
    expect(local.stats).toEqual({ waiting: 0, charged: 2, lapsed: 0, forgotten: 0 });
    await until('the log', () => said.length > 0);
    expect(said).toEqual(['charged 2 buckets for requests that were allowed while Redis was unavailable']);
  });

  test('refunds and quotas that deny together are not charged', async () => {
    const { local, back, paid, left } = setUp();
    local.take([item('a', { hits: 3 })]);
    local.take([item('a', { hits: 2, refund: true })]);
    local.take([item('b', { hits: 2, refund: true })]);
    local.take([item('q', { hits: 8, enforcement: 'quota' }), item('r', { hits: 8, enforcement: 'quota' })]);
    // Both quotas are used up, so the request is denied and the observed limit stays unchanged.
    local.take([
      item('q', { enforcement: 'quota' }),
      item('r', { enforcement: 'quota' }),
      item('o', { enforcement: 'observe' }),
    ]);
    // Only one quota is used up and stays unchanged. The request is allowed, and takes from the other limit.
    local.take([item('q', { enforcement: 'quota' }), item('s', { enforcement: 'quota' })]);
    back();
    await paid();
    expect(['a', 'b', 'q', 'r', 'o', 's'].map((key) => left(key))).toEqual([7, 8, 0, 0, 8, 7]);
  });

  test('a bucket that had time to refill is not charged', async () => {
    const { local, clock, store, back, paid } = setUp();
    local.take([item('a', { hits: 4 })]);
    clock.advance(3 * HOUR);
    back();
    await paid();
    expect(store.asked).toEqual([]);
    expect(local.stats).toMatchObject({ charged: 0, lapsed: 1 });
  });

  test('a window is charged for the hits that it allowed, unless it has ended', async () => {
    const { local, clock, back, paid, store } = setUp();
    const rate = windowRate('hour', 8);
    local.take([item('old', { hits: 4 }, 'local', rate)]);
    clock.advance(HOUR);
    local.take([item('new', { hits: 5 }, 'local', rate)]);
    back();
    await paid();
    const left = (key: string) => store.memory.take([takeItem(key, rate, { hits: 0 })])[0]?.remaining;
    expect([left('old'), left('new')]).toEqual([8, 3]);
  });

  test('a failed charge is repeated, together with the hits allowed since', async () => {
    const { local, store, state, back, paid, left } = setUp();
    local.take([item('a', { hits: 2 })]);
    store.failing = new StorageError('disconnected', 'away again');
    back();
    await until('an attempt', () => store.asked.length > 0 && local.stats.waiting === 1);
    state.up = false;
    local.take([item('a', { hits: 3 })]);
    store.failing = undefined;
    back();
    await paid();
    expect(left('a')).toBe(3);
    expect(local.stats.charged).toBe(1);
  });

  test('a charge without a reply is repeated, which may deny more but never allows more', async () => {
    const { local, store, back, paid, left } = setUp();
    local.take([item('a', { hits: 3 })]);
    store.reportsFailure = true;
    back();
    await until('an attempt', () => store.asked.length > 0 && local.stats.waiting === 1);
    store.reportsFailure = false;
    back();
    await paid();
    expect(left('a')).toBe(2);
  });

  test('a few charges run at a time', async () => {
    const { local, store, back, paid } = setUp();
    for (let i = 0; i < 3 * MAX_CONCURRENT_CHARGES; i++) local.take([item(`k${i}`)]);
    back();
    await paid();
    expect(store.maxConcurrent).toBe(MAX_CONCURRENT_CHARGES);
    expect(store.asked).toHaveLength(3 * MAX_CONCURRENT_CHARGES);
  });

  test('a store that was only late is charged, too', async () => {
    const { local, state, paid, left } = setUp();
    state.up = true;
    local.take([item('a', { hits: 3 })]);
    await paid();
    expect(left('a')).toBe(5);
  });
});

describe('bounds', () => {
  test('remove the bucket that has been unused for the longest time', async () => {
    const { local, back, paid, left } = setUp({ maxBuckets: 2 });
    for (const key of ['a', 'b', 'a', 'c']) local.take([item(key)]);
    expect(local.stats).toMatchObject({ waiting: 2, forgotten: 1 });
    back();
    await paid();
    expect([left('a'), left('b'), left('c')]).toEqual([6, 8, 7]);
  });

  test('limit the bytes, too', () => {
    const { local } = setUp({ maxBytes: 3000 });
    for (let i = 0; i < 10; i++) local.take([item(`${i}`.padEnd(700, 'x'))]);
    expect(local.stats).toMatchObject({ waiting: 2, forgotten: 8 });
  });

  test('remove buckets without owed hits first', () => {
    const { local, clock } = setUp({ maxBuckets: 2 });
    for (const key of ['a', 'b']) local.take([item(key)]);
    clock.advance(3 * HOUR);
    for (const key of ['c', 'd']) local.take([item(key)]);
    expect(local.stats).toMatchObject({ waiting: 2, lapsed: 2, forgotten: 0 });
  });
});

describe('when the process ends', () => {
  test('owed hits are charged without a pause', async () => {
    const { local, state, left } = setUp();
    for (let i = 0; i < 3 * MAX_CONCURRENT_CHARGES; i++) local.take([item(`k${i}`)]);
    state.up = true;
    await local.close();
    expect(left(`k${3 * MAX_CONCURRENT_CHARGES - 1}`)).toBe(7);
    expect(local.stats).toMatchObject({ waiting: 0, charged: 3 * MAX_CONCURRENT_CHARGES, forgotten: 0 });
  });

  test('weir waits for the current charges', async () => {
    const { local, store, back, left } = setUp();
    local.take([item('a')]);
    back();
    await until('the charge', () => store.asked.length > 0);
    await local.close();
    expect(left('a')).toBe(7);
    expect(local.stats).toMatchObject({ charged: 1, forgotten: 0 });
  });

  test('a charge without a reply after half a second counts as forgotten', async () => {
    const { local, store, back, said } = setUp();
    store.silent = true;
    local.take([item('a')]);
    back();
    await until('the charge', () => store.asked.length > 0);
    const closed = local.close();
    await jest.advanceTimersByTimeAsync(500);
    await closed;
    open.length = 0;
    expect(local.stats).toMatchObject({ waiting: 0, charged: 0, forgotten: 1 });
    expect(said).toEqual([
      'weir stopped before it had charged all buckets for requests that were allowed while Redis was ' +
        'unavailable; not charged: 1 bucket',
    ]);
  });

  test('hits that cannot be charged are given up, counted and logged', async () => {
    const { local, said } = setUp();
    local.take([item('a')]);
    await local.close();
    expect(local.stats).toMatchObject({ waiting: 0, forgotten: 1 });
    expect(said).toEqual([
      'weir stopped before it had charged all buckets for requests that were allowed while Redis was ' +
        'unavailable; not charged: 1 bucket',
    ]);
  });
});
