import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LocalTake, Take, TakeOutcome } from '../../../../src/limiter/bucket-store.js';
import type { StoreFailurePolicy } from '../../../../src/limiter/failure-policy.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import { LocalBuckets } from '../../../../src/storage/local/local-buckets.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { holdItem, settlementTake } from '../../../support/limiter/hold-items.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { type ItemOptions, takeItem } from '../../../support/limiter/take-items.js';

const HOUR = 3_600_000_000;
const EIGHT = tokenBucketRate(8, 8, HOUR);

const item = (
  key: string,
  options: ItemOptions = {},
  onStoreFailure: StoreFailurePolicy = 'local',
): LocalTake => ({ ...takeItem(key, EIGHT, options), onStoreFailure });

const open: LocalBuckets[] = [];
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  jest.useRealTimers();
});

function setUp(workers = 1) {
  const clock = new FakeClock();
  const state = { up: false };
  const newStore = (): MemoryStore => new MemoryStore({ ...MEMORY, clock });
  const local = new LocalBuckets({ newStore, clock, workers, up: () => state.up });
  open.push(local);
  /** Advances both clocks. */
  const pass = async (seconds: number): Promise<void> => {
    clock.advance(seconds * 1_000_000);
    await jest.advanceTimersByTimeAsync(seconds * 1000);
  };
  return { clock, state, local, pass };
}

describe('local buckets', () => {
  test('have a share of the limit, divided among the workers, and report the whole limit', () => {
    const { local } = setUp(2);
    const take = () => local.take([item('a', {}, { local: 0.5 })])[0];
    expect(take()).toMatchObject({ overLimit: false, remaining: 1, used: 7 });
    expect(take()).toMatchObject({ overLimit: false, remaining: 0, used: 8 });
    expect(take()).toMatchObject({ overLimit: true, remaining: 0, used: 8 });
    // `local` without a share means the whole limit, and each of two workers has half of it.
    for (let hits = 0; hits < 4; hits++) expect(local.take([item('b')])[0]?.overLimit).toBe(false);
    expect(local.take([item('b')])[0]?.overLimit).toBe(true);
  });

  test('have separate shares of the limits of one request, and are decided together', () => {
    const { local } = setUp();
    const both = () => local.take([item('a', {}, { local: 0.25 }), item('b', {}, { local: 0.5 })]);
    expect(both().map(({ overLimit }) => overLimit)).toEqual([false, false]);
    expect(both().map(({ overLimit }) => overLimit)).toEqual([false, false]);
    for (let denied = 0; denied < 2; denied++) {
      // A denied take takes nothing.
      expect(both().map(({ overLimit, remaining }) => [overLimit, remaining])).toEqual([
        [true, 0],
        [false, 2],
      ]);
    }
  });

  test('are forgotten five seconds after the last use, if Redis is available', async () => {
    const { local, state, pass } = setUp();
    const left = () => local.take([item('a', { hits: 0 })])[0]?.remaining;
    local.take([item('a', { hits: 3 })]);
    await pass(60);
    expect(left()).toBe(5);
    state.up = true;
    await pass(4);
    expect(left()).toBe(5);
    await pass(10);
    expect(left()).toBe(8);
  });
});

describe('local holds', () => {
  const local = (one: Take, onStoreFailure: StoreFailurePolicy = 'local'): LocalTake => ({
    ...one,
    onStoreFailure,
  });
  const start = (one: LocalBuckets, taken: Take) => one.take([local(taken)])[0] as TakeOutcome;

  test('of concurrent requests are a share of the slots, and are settled locally', () => {
    const { local: buckets, state } = setUp();
    const slots = () => holdItem('slots', concurrencyRate(8));
    const takes = [slots(), slots(), slots()];
    const outcomes = takes.map((taken) => buckets.take([local(taken, { local: 0.25 })])[0] as TakeOutcome);
    expect(outcomes).toMatchObject([
      { overLimit: false, hold: 'placed', remaining: 1, used: 7 },
      { overLimit: false, hold: 'placed', remaining: 0, used: 8 },
      { overLimit: true },
    ]);
    state.up = true;
    const ended = settlementTake(takes[0] as Take, outcomes[0] as TakeOutcome);
    expect(buckets.take([local(ended, { local: 0.25 })])).toMatchObject([{ hold: 'settled' }]);
    expect(buckets.take([local(ended, { local: 0.25 })])).toMatchObject([{ hold: 'unknown' }]);
  });

  test('of a bucket give back what was not used', () => {
    const { local: buckets } = setUp();
    const left = (key: string) => buckets.take([item(key, { hits: 0 })])[0]?.remaining;
    const [less, more] = ['less', 'more'].map((key) => holdItem(key, EIGHT, { hits: 4 })) as [Take, Take];
    const outcomes = [less, more].map((taken) => start(buckets, taken)) as [TakeOutcome, TakeOutcome];
    const settle = (taken: Take, outcome: TakeOutcome, used: number) =>
      buckets.take([local(settlementTake(taken, outcome, used))])[0]?.hold;
    expect(settle(less, outcomes[0], 1)).toBe('settled');
    expect(settle(less, outcomes[0], 1)).toBe('unknown');
    expect(settle(more, outcomes[1], 6)).toBe('settled');
    expect([left('less'), left('more')]).toEqual([7, 2]);
  });

  test('last until they expire, however long the store is available', async () => {
    const { local: buckets, clock, state } = setUp();
    const slots = () => holdItem('slots', concurrencyRate(1), { lifetimeMillis: 60_000 });
    expect(start(buckets, slots()).overLimit).toBe(false);
    // Local buckets without holds are forgotten after this time.
    start(buckets, takeItem('a', EIGHT));
    state.up = true;
    clock.advance(59_000_000);
    await jest.advanceTimersByTimeAsync(59_000);
    expect(start(buckets, slots()).overLimit).toBe(true);
    clock.advance(1_000_000);
    expect(start(buckets, slots()).overLimit).toBe(false);
  });
});
