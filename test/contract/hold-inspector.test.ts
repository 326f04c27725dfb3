/* Tests lists of holds, as operators see them, on all kinds of stores. */

import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type BucketStore, StorageError, type Take } from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../src/limiter/holds/concurrency.js';
import type { HoldValues } from '../../src/limiter/holds/hold.js';
import type { HoldInspector, ListedHolds } from '../../src/limiter/holds/hold-inspector.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { RedisHoldInspector } from '../../src/storage/redis/redis-hold-inspector.js';
import { clusterBenches } from '../support/limiter/cluster-bench.js';
import { holdItem, settlementTake } from '../support/limiter/hold-items.js';
import { HUNDRED } from '../support/limiter/take-items.js';
import { memoryBench, redisBenches, takeFrom } from '../support/limiter/test-stores.js';
import type { SingleClusterStore, SingleRedisStore } from '../support/redis/single-stores.js';

const SLOTS = concurrencyRate(100_000);
const HOUR = windowRate('hour', 1000);

const bookOf = (store: BucketStore): HoldInspector =>
  store instanceof MemoryStore
    ? store
    : new RedisHoldInspector(() => store as SingleRedisStore | SingleClusterStore);

async function list(
  store: BucketStore,
  { key, hashTagLength, rate }: Take,
  most = 100,
): Promise<ListedHolds> {
  const listed = await bookOf(store).listHolds({ key, hashTagLength, rate }, most);
  if (listed instanceof StorageError) throw listed;
  return listed;
}

describe.each([memoryBench(), ...redisBenches(), ...clusterBenches()])(
  'a list of holds on $name',
  (bench) => {
    beforeAll(() => bench.start());
    afterEach(() => bench.reset());
    const isMemory = bench.name === 'memory';

    test('contains the values that settle them, for each kind of limit', async () => {
      const store = await bench.open();
      for (const rate of [SLOTS, HUNDRED, HOUR]) {
        const take = holdItem(rate.kind, rate, { hits: 7, lifetimeMillis: 30_000 });
        const [outcome] = await takeFrom(store, take);
        bench.clock.advance(10_000_000);
        const { holds, more } = await list(store, take);
        const { id, lifetimeMillis } = take.holds as NonNullable<Take['holds']>;
        const hasLifetime = isMemory || rate !== SLOTS;
        expect(more).toBe(0);
        expect(holds).toEqual([
          {
            id,
            amount: 7,
            lifetimeMillis: hasLifetime ? lifetimeMillis : undefined,
            fullAtMicros: outcome?.fullAtMicros ?? 0,
            refillMicros: outcome?.refillMicros ?? 0,
            freesUnknown: false,
            remainingMicros: 20_000_000,
          },
        ]);
        const { amount, fullAtMicros, refillMicros } = holds[0] as (typeof holds)[number];
        expect(amount).toBe(take.hits);
        const settlement = settlementTake(take, { fullAtMicros, refillMicros });
        const settles = settlement.settles as HoldValues;
        const has = (changed: Partial<HoldValues> = {}) =>
          bookOf(store).hasHold(take, { ...settles, ...changed });
        expect([await has(), await has({ id: 'f'.repeat(24) })]).toEqual([true, false]);
        // Redis does not compare the other values of slots.
        if (hasLifetime) expect(await has({ lifetimeMillis: 30_001 })).toBe(false);
        const [settled] = await takeFrom(store, settlement);
        expect(settled?.hold).toBe('settled');
        expect(await has()).toBe(false);
        expect(await list(store, take)).toEqual({ holds: [], more: 0 });
      }
    });

    test('begins with those that expire first, counts the others, and omits other buckets', async () => {
      const store = await bench.open();
      const takes = [3, 1, 2, 5, 4].map((seconds) =>
        holdItem('one', SLOTS, { hits: seconds, lifetimeMillis: 60_000 + seconds * 1000 }),
      );
      for (const take of takes) await takeFrom(store, take, holdItem('one,two', HUNDRED));
      const amounts = async (most: number) => {
        const { holds, more } = await list(store, takes[0] as Take, most);
        return [holds.map(({ amount }) => amount), more];
      };
      expect(await amounts(3)).toEqual([[1, 2, 3], 9]);
      expect(await amounts(5)).toEqual([[1, 2, 3, 4, 5], 0]);
      const has = (take: Take | undefined) =>
        bookOf(store).hasHold(take as Take, settlementTake(take as Take, {}).settles as HoldValues);
      bench.clock.advance(62_500_000);
      expect(await amounts(1)).toEqual([[3], 9]);
      expect([await has(takes[2]), await has(takes[0])]).toEqual([false, true]);
    });

    test('contains holds that free their hits, and others', async () => {
      const store = await bench.open();
      const takes = [3, 1, 2, 4].map((minutes) => {
        const { holds, ...take } = holdItem('one', HOUR, { hits: minutes, lifetimeMillis: minutes * 60_000 });
        return { ...take, holds: { id: '', lifetimeMillis: 0, ...holds, freesUnknown: minutes < 3 } };
      });
      for (const take of takes) await takeFrom(store, take);
      const found = async (most: number) => {
        const { holds, more } = await list(store, takes[0] as Take, most);
        return [holds.map(({ amount, freesUnknown }) => [amount, freesUnknown]), more];
      };
      const all = [
        [1, true],
        [2, true],
        [3, false],
        [4, false],
      ];
      expect(await found(9)).toEqual([all, 0]);
      expect(await found(3)).toEqual([all.slice(0, 3), 1]);
      for (const take of takes) {
        const settlement = settlementTake(take, {}).settles as HoldValues;
        expect(await bookOf(store).hasHold(take, settlement)).toBe(true);
      }
    });

    test('contains only whole holds, even of many slots', async () => {
      const store = await bench.open();
      const take = () => holdItem('one', SLOTS, { hits: 400 });
      for (let i = 0; i < 5; i++) await takeFrom(store, take());
      const { holds, more } = await list(store, take(), 100);
      expect(holds.every(({ amount }) => amount === 400)).toBe(true);
      expect(holds.length).toBeGreaterThan(1);
      expect(holds.length * 400 + more).toBe(2000);
    });

    test('does not end with a part of a hold', async () => {
      const store = await bench.open();
      const take = (hits: number, lifetimeMillis: number) => holdItem('one', SLOTS, { hits, lifetimeMillis });
      await takeFrom(store, take(900, 60_000));
      await takeFrom(store, take(200, 61_000));
      const { holds, more } = await list(store, take(1, 1), 2);
      const amounts = holds.map(({ amount }) => amount);
      expect([amounts, more]).toEqual(isMemory ? [[900, 200], 0] : [[900], 200]);
    });
  },
);
