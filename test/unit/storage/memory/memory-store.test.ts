import { describe, expect, jest, test } from '@jest/globals';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { tokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../../src/limiter/window-unit.js';
import { BucketTable, bucketBytes } from '../../../../src/storage/memory/bucket-table.js';
import { MemoryStore, type MemoryStoreOptions } from '../../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { holdItem } from '../../../support/limiter/hold-items.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';

const SECOND = UNIT_MICROS.second;

function open(options: Partial<MemoryStoreOptions> = {}) {
  const clock = new FakeClock();
  return { clock, store: new MemoryStore({ ...MEMORY, clock, ...options }) };
}

/** Returns the remaining tokens with a peek. */
function remainingTokens(store: MemoryStore, key: string): number {
  return store.take([takeItem(key, HUNDRED, { hits: 0 })])[0]!.remaining;
}

describe('bounds', () => {
  test('evict the bucket that will be full soonest, and count it', () => {
    const { store } = open({ maxBuckets: 3 });
    store.take([takeItem('a', HUNDRED, { hits: 50 })]);
    store.take([takeItem('b', HUNDRED, { hits: 20 })]);
    store.take([takeItem('c', HUNDRED, { hits: 90 })]);
    expect([store.size, store.evictions]).toEqual([3, 0]);
    store.take([takeItem('d', HUNDRED, { hits: 30 })]);
    expect([store.size, store.evictions]).toEqual([3, 1]);
    expect(['a', 'b', 'c', 'd'].map((key) => remainingTokens(store, key))).toEqual([50, 100, 10, 70]);
  });

  test('take later takes and refunds into account', () => {
    const { store } = open({ maxBuckets: 3 });
    for (const key of ['a', 'b', 'c']) store.take([takeItem(key, HUNDRED, { hits: 40 })]);
    store.take([takeItem('a', HUNDRED, { hits: 50 })]);
    store.take([takeItem('c', HUNDRED, { hits: 20, refund: true })]);
    store.take([takeItem('d', HUNDRED, { hits: 95 })]);
    expect(['a', 'b', 'c', 'd'].map((key) => remainingTokens(store, key))).toEqual([10, 60, 100, 5]);
    store.take([takeItem('e', HUNDRED, { hits: 99 })]);
    expect(['a', 'b', 'e'].map((key) => remainingTokens(store, key))).toEqual([10, 100, 1]);
  });

  test('limit the bytes of the holds of one request together', () => {
    const { store } = open({ maxBytes: 1_000_000 });
    const many = Array.from({ length: 100 }, (_, i) =>
      holdItem(`k${i}`, concurrencyRate(1000), { hits: 1000 }),
    );
    expect(store.take(many).some(({ overLimit }) => overLimit)).toBe(true);
    const observed = many.map((take) => ({ ...take, enforcement: 'observe' as const }));
    expect(store.take(observed).filter(({ hold }) => hold === 'placed').length).toBeGreaterThan(0);
    expect(store.bytes).toBeLessThanOrEqual(250_000);
  });

  test('deny a hold that does not fit, with nothing left of its limit, and report it', () => {
    let refused = 0;
    const { store } = open({ maxBytes: 1, onHoldRefused: () => refused++ });
    const slots = concurrencyRate(10);
    const takes = [
      holdItem('a', slots),
      holdItem('b', HUNDRED, { hits: 5 }),
      holdItem('a', slots, { hits: 0 }),
    ];
    const outcomes = store.take(takes.map((take) => ({ ...take, enforcement: 'observe' as const })));
    // A look needs no memory.
    const seen = outcomes.map(({ overLimit, remaining, hold }) => [overLimit, remaining, hold]);
    expect(seen).toEqual([
      [true, 0, undefined],
      [true, 0, undefined],
      [false, 10, undefined],
    ]);
    expect([refused, store.refusedHolds]).toEqual([2, 2]);
  });

  test('evict windows by their end', () => {
    const { store } = open({ maxBuckets: 2 });
    store.take([takeItem('day', windowRate('day', 9))]);
    store.take([takeItem('second', windowRate('second', 9))]);
    store.take([takeItem('a', HUNDRED, { hits: 50 })]);
    expect(store.take([takeItem('day', windowRate('day', 9))])[0]!.remaining).toBe(7);
    expect(remainingTokens(store, 'a')).toBe(50);
  });

  test('limit the bytes, too, with keys of any length', () => {
    const long = 'k'.repeat(1000);
    const { store } = open({ maxBytes: 3 * bucketBytes(`${long}0`) });
    for (let i = 0; i < 9; i++) store.take([takeItem(`${long}${i}`, HUNDRED, { hits: 10 + i })]);
    expect([store.size, store.evictions, store.bytes]).toEqual([3, 6, 3 * bucketBytes(`${long}0`)]);
    expect(remainingTokens(store, `${long}8`)).toBe(82);
  });

  test('allow one bucket even if it exceeds them', () => {
    const { store } = open({ maxBytes: 1 });
    store.take([takeItem('a', HUNDRED, { hits: 10 })]);
    expect([store.size, remainingTokens(store, 'a')]).toEqual([1, 90]);
  });

  test('do not prevent a request that exceeds them', () => {
    const { store } = open({ maxBuckets: 5 });
    const takes = Array.from({ length: 50 }, (_, i) => takeItem(`k${i}`, HUNDRED));
    expect(store.take(takes).every(({ overLimit }) => !overLimit)).toBe(true);
    expect(store.size).toBe(5);
  });

  test('evict one bucket after a few checks, even if all heap entries are outdated', () => {
    const { store } = open({ maxBuckets: 500 });
    for (let i = 0; i < 500; i++) store.take([takeItem(`k${i}`, HUNDRED)]);
    for (let i = 0; i < 500; i++) store.take([takeItem(`k${i}`, HUNDRED, { hits: 40 })]);
    for (let i = 0; i < 100; i++) store.take([takeItem(`new${i}`, HUNDRED, { hits: 90 })]);
    expect([store.size, store.evictions]).toEqual([500, 100]);
    for (let i = 0; i < 100; i++) expect(remainingTokens(store, `new${i}`)).toBe(10);
  });
});

describe('housekeeping', () => {
  test('a bucket that is full again after a refund is removed at once', () => {
    const { store } = open();
    store.take([takeItem('a', HUNDRED, { hits: 3 })]);
    expect(store.size).toBe(1);
    store.take([takeItem('a', HUNDRED, { hits: 3, refund: true })]);
    expect([store.size, store.bytes]).toEqual([0, 0]);
  });

  test('full buckets and ended windows are removed by later takes, and do not count as evictions', () => {
    const { clock, store } = open();
    for (let i = 0; i < 1000; i++) store.take([takeItem(`k${i}`, HUNDRED)]);
    for (let i = 0; i < 1000; i++) store.take([takeItem(`w${i}`, windowRate('second', 9))]);
    expect(store.size).toBe(2000);
    clock.advance(SECOND);
    for (let i = 0; i < 600; i++) store.take([takeItem('busy', tokenBucketRate(5000, 1, SECOND))]);
    expect([store.size, store.evictions]).toEqual([1, 0]);
  });

  test('a peek stores no bucket', () => {
    const { store } = open();
    expect(remainingTokens(store, 'a')).toBe(100);
    store.take([takeItem('a', HUNDRED, { hits: 101 })]);
    store.take([takeItem('w', windowRate('day', 5), { hits: 0 })]);
    expect(store.size).toBe(0);
  });
});

describe('many items in one request', () => {
  test('buckets that are evicted for new ones of the same request are not written to their old slots', () => {
    const { store } = open({ maxBuckets: 10 });
    const round = (from: number) =>
      store.take(Array.from({ length: 12 }, (_, i) => takeItem(`k${from + i}`, HUNDRED, { hits: 10 + i })));
    round(0);
    for (let from = 1; from < 30; from++) {
      const outcomes = round(from);
      expect(outcomes).toHaveLength(12);
      expect(store.size).toBe(10);
      // Each key has its own stored state.
      const remaining = Array.from({ length: 12 }, (_, i) => remainingTokens(store, `k${from + i}`));
      for (let i = 0; i < 12; i++) expect([100, outcomes[i]?.remaining]).toContain(remaining[i]);
    }
  });
});

test('items with the same key share a bucket, and keys with the same hash do not', () => {
  const keys = Array.from({ length: 30 }, (_, i) => `key-${i % 10}`);
  const take = (): (number | undefined)[] =>
    open()
      .store.take(keys.map((key) => takeItem(key, HUNDRED)))
      .map(({ remaining }) => remaining);
  const expected = keys.map((_, i) => 99 - Math.floor(i / 10));
  expect(take()).toEqual(expected);
  const hash = jest.spyOn(BucketTable.prototype, 'hashOf').mockReturnValue(7);
  try {
    expect(take()).toEqual(expected);
  } finally {
    hash.mockRestore();
  }
});
