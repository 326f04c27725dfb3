import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import type { BucketStore, Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { turn } from '../../../src/runtime/turns.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type { Partition } from '../../../src/storage/sharded/shard.js';
import { isPerSecond, ShardedStore } from '../../../src/storage/sharded/sharded-store.js';
import { expectAtLeast, expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { abandonedEnds, holdItem, settlementTake } from '../../support/limiter/hold-items.js';
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
    if (waitMicros !== wait) expectAtMost(Math.abs(waitMicros - wait), 1);
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
    return store.rollbackStats.made;
  };
  const shares = (one: Take, other: Take) =>
    mapOf(one) === mapOf(other) && mapOf(one).shardAt(one) === mapOf(other).shardAt(other);
  return { store, shares, look, gaveBack };
}

describe.each(SPREADS)('%s', (_, partOf) => {
  test.each([
    ['', true, false, 10],
    ['', false, false, 10],
    [' if a second store has the windows of one second', true, true, 6],
    [' if a second store has the windows of one second', false, true, 6],
  ])(
    'decide like one store%s (windows count denied hits: %s)',
    async (_if, countDeniedHits, hasSecond, least) => {
      let gaveBack = 0;
      await fc.assert(
        fc.asyncProperty(someRequests, async (requests) => {
          const clock = new FakeClock();
          const shards = () => new MemoryShards(clock, countDeniedHits, partOf);
          const world = sharded(clock, countDeniedHits, shards(), hasSecond ? shards() : undefined);
          gaveBack += await compare(requests, clock, countDeniedHits, world);
        }),
        runs(300),
      );
      expectAtLeast(gaveBack, least);
    },
  );
});

/** Buckets whose takes hold, and buckets without holds. The first character of a key is its partition. */
const HOLDING: readonly (readonly [key: string, rate: Rate])[] = [
  ['a slots', concurrencyRate(2)],
  ['b slots', concurrencyRate(3)],
  ['a bucket', tokenBucketRate(30, 3, 1_000_000, 0, Infinity)],
  ['b owing', tokenBucketRate(20, 1, 1_000_000, 20, Infinity)],
  ['c window', windowRate('minute', 20, { countsOnlyAllowed: true })],
  ['c owing', windowRate('second', 20, { maxDebt: 5, minChargeHits: Infinity })],
];
const PLAIN: typeof HOLDING = [
  ['b plain', tokenBucketRate(3, 1, 1_000_000)],
  ['d plain', windowRate('minute', 6, { countsOnlyAllowed: true })],
  ['d second', windowRate('second', 2)],
];
const ALL = [...HOLDING, ...PLAIN];

const enforcement = fc.constantFrom(
  'enforce' as const,
  'enforce' as const,
  'observe' as const,
  'quota' as const,
);
const asked = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ bucket: fc.constantFrom(...HOLDING), hits: fc.nat(7), enforcement }),
  },
  { weight: 2, arbitrary: fc.record({ bucket: fc.constantFrom(...PLAIN), hits: fc.nat(3), enforcement }) },
);
const step = fc.record({
  wait: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 700_000 }),
    fc.integer({ min: 0, max: 5_000_000 }),
  ),
  /** The number of a request to settle instead of a start. */
  settles: fc.option(fc.nat(), { nil: undefined, freq: 3 }),
  used: fc.nat(12),
  lifetimeMillis: fc.constantFrom(1000, 60_000),
  asked: fc.array(asked, { minLength: 2, maxLength: 6 }),
});

function itemOf(
  { bucket: [key, rate], ...options }: typeof asked extends fc.Arbitrary<infer T> ? T : never,
  lifetimeMillis: number,
): Take {
  if (PLAIN.some(([plain]) => plain === key)) return takeItem(key, rate, options);
  const hits = rate.kind === 'concurrency' ? options.hits % 4 : options.hits;
  // A peek of a rule with holds contains an id, too.
  return holdItem(key, rate, { ...options, hits, lifetimeMillis });
}

/** Returns an outcome without a hold that the caller ends. */
function withoutAbandoned(outcome: TakeOutcome): TakeOutcome {
  if (outcome.hold !== 'abandoned') return outcome;
  const { hold: _, fullAtMicros: __, refillMicros: ___, ...rest } = outcome;
  return rest;
}

describe.each([
  ['one Redis', false],
  ['a second Redis for windows of a second', true],
])('holds in several partitions, with %s,', (_, hasSecond) => {
  test.each([true, false])(
    'are those of one store, and a denied request leaves none (windows count denied hits: %s)',
    async (countDeniedHits) => {
      let gaveBack = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async (steps) => {
          const clock = new FakeClock();
          const one = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
          const main = new MemoryShards(clock, countDeniedHits);
          const perSecond = hasSecond ? new MemoryShards(clock, countDeniedHits) : undefined;
          const monotonicMicros = () => clock.monotonicMicros();
          const store = new ShardedStore({
            ...{ main, perSecond, countDeniedHits, timeoutMicros: 1_000_000, monotonicMicros },
          });
          const started: Take[][] = [];
          for (const { wait, settles, used, lifetimeMillis, asked: drawn } of steps) {
            clock.advance(wait);
            const settled = settles === undefined ? undefined : started[settles % started.length];
            const takes = settled ?? drawn.map((each) => itemOf(each, lifetimeMillis));
            const found = (await store.take(takes, Infinity)) as readonly TakeOutcome[];
            expectSameOutcomes(found.map(withoutAbandoned), one.take(takes));
            const ends = abandonedEnds(takes, found);
            if (ends.length > 0) await store.take(ends, Infinity);
            const settlements = takes.flatMap((take, i) => {
              const outcome = found[i] as TakeOutcome;
              return outcome.hold === 'placed' ? [settlementTake(take, outcome, used)] : [];
            });
            if (settlements.length > 0) started.push(settlements);
            // The hits have been given back.
            await turn();
            for (const [key, rate] of ALL) {
              const look = takeItem(key, rate, { hits: 0 });
              const map = perSecond !== undefined && isPerSecond(look) ? perSecond : main;
              expectSameOutcomes(map.shardAt(look).memory.take([look]), one.take([look]));
            }
          }
          gaveBack += store.rollbackStats.made;
          expectEqual(store.rollbackStats, { ...store.rollbackStats, failed: 0, skipped: 0 });
        }),
        runs(240),
      );
      expectAtLeast(gaveBack, 20);
    },
  );
});
