import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeResult,
} from '../../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { ShardedStore } from '../../../../src/storage/sharded/sharded-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';
import { singleShardMap } from '../../../support/sharded/single-shard-map.js';

const PER_SECOND = windowRate('second', 2);
const PER_MINUTE = windowRate('minute', 5);

/** A store that records its calls, and fails on demand. */
class Recording implements BucketStore {
  readonly asked: (readonly TakeItem[])[] = [];
  readonly deadlines: number[] = [];
  failure: StorageError | undefined;
  closed = false;
  before: () => void = () => {};
  readonly inner: MemoryStore;

  constructor(clock: FakeClock, countDeniedHits: boolean) {
    this.inner = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  take(items: readonly TakeItem[], deadlineMicros: number): TakeResult | Promise<TakeResult> {
    this.asked.push(items);
    this.deadlines.push(deadlineMicros);
    this.before();
    return this.failure ?? Promise.resolve(this.inner.take(items));
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

let clock: FakeClock;
let perSecond: Recording;
let main: Recording;
let split: ShardedStore;

function open(countDeniedHits = true): void {
  clock = new FakeClock();
  perSecond = new Recording(clock, countDeniedHits);
  main = new Recording(clock, countDeniedHits);
  split = new ShardedStore({
    perSecond: singleShardMap(perSecond),
    main: singleShardMap(main),
    countDeniedHits,
    timeoutMicros: 1000,
    monotonicMicros: () => clock.monotonicMicros(),
  });
}
beforeEach(() => open());

const take = (...items: TakeItem[]) => split.take(items, Infinity);
const second = takeItem('s', PER_SECOND);
const minute = takeItem('m', PER_MINUTE);
const tokens = takeItem('b', HUNDRED);

describe('a request to both', () => {
  test('leaves no trace of the order in which the stores deny it', async () => {
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    await take(tokens, second);
    expect(main.inner.size).toBe(0);
  });

  test('has one deadline, the sooner of its own and the timeout', async () => {
    const now = clock.monotonicMicros();
    await take(second, minute);
    await split.take([second, minute], now + 7);
    expect(perSecond.deadlines).toEqual([now + 1000, now + 7]);
    expect(main.deadlines).toEqual([now + 1000, now + 7]);
  });

  test('a refund to a one-second window is applied only if the request is allowed', async () => {
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    await take(takeItem('b', HUNDRED, { hits: 100 }));
    const refund = takeItem('s', PER_SECOND, { refund: true });
    expect(await take(refund, tokens)).toMatchObject([{ used: 2 }, { limited: true }]);
    expect(await take(refund, minute)).toMatchObject([{ used: 1 }, { limited: false }]);
  });

  test.each([true, false])('applies a refund once (denied hits count: %s)', async (countDeniedHits) => {
    open(countDeniedHits);
    await take(takeItem('s', PER_SECOND, { hits: 2 }));
    await take(takeItem('s', PER_SECOND, { refund: true }), minute);
    expect(perSecond.inner.take([takeItem('s', PER_SECOND, { hits: 0 })])).toMatchObject([{ used: 1 }]);
  });
});

test('windows of several seconds, or with debt, are in the main store', async () => {
  const several = takeItem('x', windowRate('second', 3, { multiplier: 5 }));
  const owing = takeItem('y', windowRate('second', 3, { maxDebt: 3 }));
  await take(second, several, owing);
  expect(main.asked).toEqual([[several, owing]]);
});

describe('an error', () => {
  const unavailable = new StorageError('disconnected', 'unavailable');

  test('of the first store is the error of the request, and no tokens are taken from the other store', async () => {
    perSecond.failure = unavailable;
    expect(await take(second, tokens)).toBe(unavailable);
    expect(await take({ ...tokens, hits: 0 })).toMatchObject([{ limited: false, used: 0 }]);
  });

  test('of either store cannot be used to get around a limit of the other store', async () => {
    await take({ ...tokens, hits: 100 });
    perSecond.failure = unavailable;
    expect(await take(second, tokens)).toMatchObject([{ limited: false }, { limited: true, remaining: 0 }]);
    expect(await take(second, { ...tokens, enforcement: 'observe' })).toBe(unavailable);
    perSecond.failure = undefined;
    for (let i = 0; i < 10; i++) await take(second);
    main.failure = unavailable;
    expect(await take(second, tokens)).toMatchObject([{ limited: true }, { limited: false, remaining: 0 }]);
  });
});

test('closing closes both', async () => {
  await split.close();
  expect([perSecond.closed, main.closed]).toEqual([true, true]);
});
