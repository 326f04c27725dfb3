import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeResult,
} from '../../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { tokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import { turn } from '../../../../src/runtime/turns.js';
import { DenyCache } from '../../../../src/storage/deny-cache.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { ShardedStore } from '../../../../src/storage/sharded/sharded-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { singleShardMap } from '../../../support/sharded/single-shard-map.js';

const PER_SECOND = windowRate('second', 2);
const PER_MINUTE = windowRate('minute', 5);
const AWAY = new StorageError('disconnected', 'away');

type Answer = (takes: readonly Take[]) => TakeResult | Promise<TakeResult>;

/** Buckets in memory. `steps` replaces the results of the calls with these numbers. */
class Stepped implements BucketStore {
  readonly inner: MemoryStore;
  private asked = 0;
  readonly steps = new Map<number, Answer>();

  constructor(clock: FakeClock, countDeniedHits: boolean) {
    this.inner = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  take(takes: readonly Take[]): TakeResult | Promise<TakeResult> {
    const step = this.steps.get(++this.asked);
    return step === undefined ? Promise.resolve(this.inner.take(takes)) : step(takes);
  }

  async close(): Promise<void> {}
}

let clock: FakeClock;
let perSecond: Stepped;
let main: Stepped;
let split: ShardedStore;
const told: (readonly Take[])[] = [];
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => {
  unhandled.push(error);
};

function open(countDeniedHits = false): void {
  clock = new FakeClock();
  perSecond = new Stepped(clock, countDeniedHits);
  main = new Stepped(clock, countDeniedHits);
  told.length = 0;
  split = new ShardedStore({
    perSecond: singleShardMap(perSecond),
    main: singleShardMap(main),
    countDeniedHits,
    timeoutMicros: 1000,
    monotonicMicros: () => clock.monotonicMicros(),
    onRollback: (refunds) => told.push(refunds),
  });
}
beforeEach(() => {
  open();
  unhandled.length = 0;
  process.on('unhandledRejection', onUnhandled);
});
afterEach(async () => {
  await split.close();
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled).toEqual([]);
});

const take = (...takes: Take[]) => split.take(takes, Infinity);
const second = takeItem('s', PER_SECOND);
const minute = takeItem('m', PER_MINUTE);
const tokens = takeItem('b', HUNDRED);
const peek = ({ key, rate }: Take) => main.inner.take([takeItem(key, rate, { hits: 0 })])[0]!;
const settled = () => waitFor('the store to have been given back', () => told.length === 2);

/** Other requests use up the one-second window. */
const useUp = () => perSecond.inner.take([takeItem('s', PER_SECOND, { hits: 2 })]);

describe('a request that finds a one-second window used up', () => {
  test('gets a charge back, unless the charge reached the maximum debt of a bucket', async () => {
    useUp();
    const owing = tokenBucketRate(100, 10, 1_000_000, 50);
    const smallCharge = takeItem('r', owing, { hits: 120 });
    const largeCharge = takeItem('d', owing, { hits: 200 });
    const window = takeItem('w', windowRate('minute', 5, { maxDebt: 5 }), { hits: 12 });
    expect(await take(second, smallCharge, largeCharge, window)).toMatchObject([
      { overLimit: true },
      { remaining: 100, waitMicros: 0, uncollectedHits: 0 },
      { remaining: 0, uncollectedHits: 0 },
      { remaining: 5, used: 0, uncollectedHits: 0 },
    ]);
    await settled();
    expect([peek(smallCharge).used, peek(largeCharge).used, peek(window).used]).toEqual([0, 100, 0]);
  });

  test('reports the debt of a bucket that was in debt before', async () => {
    useUp();
    const owing = tokenBucketRate(100, 10, 1_000_000, 50);
    main.inner.take([takeItem('d', owing, { hits: 110 })]);
    expect(await take(second, takeItem('d', owing, { hits: 20, enforcement: 'observe' }))).toMatchObject([
      { overLimit: true },
      { remaining: 0, waitMicros: 1_100_000 },
    ]);
    await settled();
    expect(peek(takeItem('d', owing)).waitMicros).toBe(1_100_000);
  });

  test('is allowed if only quotas were used up and the main store has an unused one', async () => {
    useUp();
    const quota = takeItem('s', PER_SECOND, { enforcement: 'quota' });
    const mainQuota = takeItem('m', PER_MINUTE, { enforcement: 'quota' });
    const enforced = takeItem('t', PER_SECOND);
    expect(await take(quota, enforced, mainQuota)).toMatchObject([
      { overLimit: true },
      { overLimit: false, used: 1 },
      { overLimit: false, used: 1 },
    ]);
    expect(perSecond.inner.take([takeItem('t', PER_SECOND, { hits: 0 })])[0]).toMatchObject({ used: 1 });
    expect(peek(minute).used).toBe(1);
  });

  test('is denied if all quotas are used up', async () => {
    useUp();
    main.inner.take([takeItem('m', PER_MINUTE, { hits: 5 })]);
    const quotas = [second, minute].map((take) => ({ ...take, enforcement: 'quota' as const }));
    expect(await take(...quotas, tokens)).toMatchObject([{ overLimit: true }, { overLimit: true }, {}]);
    await settled();
    expect(peek(tokens).used).toBe(0);
  });
});

test.each([true, false])(
  'an error of either store cannot be used to get around a limit of the other (denied hits count: %s)',
  async (countDeniedHits) => {
    open(countDeniedHits);
    main.inner.take([takeItem('b', HUNDRED, { hits: 100 })]);
    for (const step of [1, 2]) perSecond.steps.set(step, () => AWAY);
    expect(await take(second, tokens)).toMatchObject([
      { overLimit: false },
      { overLimit: true, remaining: 0 },
    ]);
    expect(await take(second, { ...tokens, enforcement: 'observe' })).toBe(AWAY);
    perSecond.inner.take([takeItem('s', PER_SECOND, { hits: 2 })]);
    for (const step of [1, 2, 3]) main.steps.set(step, () => AWAY);
    expect(await take(second, tokens)).toMatchObject([
      { overLimit: true },
      { overLimit: false, remaining: 0 },
    ]);
  },
);

describe('giving back', () => {
  test('removes denials from a deny cache that it stored in the meantime', async () => {
    const cache: DenyCache = new DenyCache({
      store: new ShardedStore({
        perSecond: singleShardMap(perSecond),
        main: singleShardMap(main),
        countDeniedHits: false,
        timeoutMicros: 1000,
        monotonicMicros: () => clock.monotonicMicros(),
        onRollback: (refunds) => {
          told.push(refunds);
          cache.refunded(refunds);
        },
      }),
      maxAgeMicros: 1_000_000,
      maxEntries: 10,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    main.inner.take([takeItem('b', HUNDRED, { hits: 99 })]);
    // Another request is denied because of the hits that this one has taken.
    perSecond.steps.set(1, async () => {
      await turn();
      expect(await cache.take([tokens], Infinity)).toMatchObject([{ overLimit: true }]);
      expect(await cache.take([tokens], Infinity)).toMatchObject([{ overLimit: true, cached: true }]);
      return AWAY;
    });
    expect(await cache.take([second, tokens], Infinity)).toBe(AWAY);
    await settled();
    expect(await cache.take([tokens], Infinity)).toMatchObject([{ overLimit: false, remaining: 0 }]);
  });
});
