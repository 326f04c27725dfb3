import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import type { BucketStore, Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { turn } from '../../../src/runtime/turns.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type { Partition } from '../../../src/storage/sharded/shard.js';
import { isPerSecond, ShardedStore } from '../../../src/storage/sharded/sharded-store.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { BUCKETS, DEEP_DEBT_RATE, someRequest, withDeepDebt } from '../../support/limiter/small-buckets.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { MemoryShards } from '../../support/sharded/memory-shards.js';

/**
 * Distribution of keys over partitions: several keys on each partition, as tenants on slots, or one key each, as while
 * slots are migrating.
 */
const SPREADS: readonly (readonly [name: string, partOf: (key: string) => Partition])[] = [
  ['three partitions', (key) => key.charCodeAt(0) % 3],
  ['a partition for each key', (key) => key],
];

/** Returns whether a request both takes from and refunds a bucket. The take is then decided first. */
function takesFirst(takes: readonly Take[]): boolean {
  const keys = (refund: boolean) => takes.filter((one) => one.refund === refund).map(({ key }) => key);
  return keys(true).some((key) => keys(false).includes(key));
}

/** Expects that both stores return the same result, except that a wait may differ by 1 µs. Only takes can be undone. */
function expectSameOutcomes(found: readonly TakeOutcome[], truth: readonly TakeOutcome[]): void {
  found.forEach(({ waitMicros, undoAtMicros: _, ...told }, i) => {
    const { waitMicros: wait, undoAtMicros: __, ...known } = truth[i] as TakeOutcome;
    expectEqual(told, known);
    expectAtMost(Math.abs(waitMicros - wait), 1);
  });
}

interface World {
  readonly store: BucketStore;
  /** Returns whether one partition has the buckets of both items, so that they can be in one chain (`then`). */
  shares(one: Take, other: Take): boolean;
  /** Peeks at one bucket. */
  look(take: Take): TakeOutcome;
  gaveBack(): number;
}

/**
 * Makes chains of some items whose buckets share a partition. The items of a chain are all takes or all refunds, and
 * none is a window that counts denied hits, because windows in a list do not.
 */
function withChains(
  takes: readonly Take[],
  countDeniedHits: boolean,
  shares: World['shares'],
): readonly Take[] {
  const mayBeInChain = ({ rate }: Take): boolean => !rate.countsDenied(countDeniedHits);
  return takes.map((take, i) => {
    const next = takes[i + 1];
    if (next === undefined || !mayBeInChain(take) || !mayBeInChain(next)) return take;
    const joins = (take.hits + i) % 3 > 0 && take.refund === next.refund && shares(take, next);
    return joins ? { ...take, enforcement: 'spill' } : take;
  });
}

const someRequests = fc.array(someRequest, { minLength: 1, maxLength: 25 });

/** Sends the same requests to `world` and to one store. Returns the number of rollbacks. */
async function compare(
  requests: typeof someRequests extends fc.Arbitrary<infer Requests> ? Requests : never,
  clock: FakeClock,
  countDeniedHits: boolean,
  world: World,
): Promise<number> {
  const one = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  for (const { wait, items: drawn } of requests) {
    clock.advance(wait);
    const takes = withChains(withDeepDebt(drawn), countDeniedHits, (one, other) => world.shares(one, other));
    if (takesFirst(takes)) continue;
    const found = (await world.store.take(takes, Infinity)) as readonly TakeOutcome[];
    expectSameOutcomes(found, one.take(takes));
    // The hits have been given back.
    await turn();
    for (const [key, rate] of BUCKETS) {
      const look = takeItem(key, key === 'd' ? DEEP_DEBT_RATE : rate, { hits: 0 });
      expectEqual(world.look(look), one.take([look])[0]);
    }
  }
  return world.gaveBack();
}

function sharded(clock: FakeClock, countDeniedHits: boolean, main: MemoryShards, perSecond?: MemoryShards) {
  const monotonicMicros = () => clock.monotonicMicros();
  const options = { countDeniedHits, timeoutMicros: 1_000_000, monotonicMicros };
  const store = new ShardedStore({ main, perSecond, ...options });
  const mapOf = (take: Take) => (perSecond !== undefined && isPerSecond(take) ? perSecond : main);
  const look = (take: Take) => mapOf(take).shardAt(take).memory.take([take])[0] as TakeOutcome;
  const gaveBack = () => {
    expectEqual(store.rollbackStats, { ...store.rollbackStats, failed: 0, skipped: 0 });
    return store.rollbackStats.completed;
  };
  const shares = (one: Take, other: Take) =>
    mapOf(one) === mapOf(other) && mapOf(one).shardAt(one) === mapOf(other).shardAt(other);
  return { store, shares, look, gaveBack };
}

describe.each(SPREADS)('%s', (_, partOf) => {
  test.each([true, false])(
    'decide like one store (windows count denied hits: %s)',
    async (countDeniedHits) => {
      let gaveBack = 0;
      await fc.assert(
        fc.asyncProperty(someRequests, async (requests) => {
          const clock = new FakeClock();
          const main = new MemoryShards(clock, countDeniedHits, partOf);
          gaveBack += await compare(requests, clock, countDeniedHits, sharded(clock, countDeniedHits, main));
        }),
        runs(300),
      );
      expectAtMost(10, gaveBack);
    },
  );

  test.each([true, false])(
    'decide like one store if a second store has the windows of one second (denied hits count: %s)',
    async (countDeniedHits) => {
      let gaveBack = 0;
      await fc.assert(
        fc.asyncProperty(someRequests, async (requests) => {
          const clock = new FakeClock();
          const main = new MemoryShards(clock, countDeniedHits, partOf);
          const perSecond = new MemoryShards(clock, countDeniedHits, partOf);
          const world = sharded(clock, countDeniedHits, main, perSecond);
          gaveBack += await compare(requests, clock, countDeniedHits, world);
        }),
        runs(300),
      );
      expectAtMost(6, gaveBack);
    },
  );
});
