/*
 * Leases of three replicas on one Redis: whatever the replicas do, and whenever they are suspended or crash, no
 * interval has more hits than the bucket and its refill allow (G2), and no window more than its limit (G4). The store
 * grants what the same number of single takes would get (G1).
 */
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeOutcome,
} from '../../src/limiter/bucket-store.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { TimedRate } from '../../src/limiter/rate.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { leasedRate } from '../../src/policy/leases.js';
import { rateOf } from '../../src/policy/plans/plan-rate.js';
import { LeaseStore } from '../../src/storage/leases.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { expectAtMost, expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { ClusterBench } from '../support/limiter/cluster-bench.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { RedisBench } from '../support/limiter/test-stores.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(180_000);

const MS = 1000;
const REPLICAS = 3;
const LEASE = { forMicros: 50 * MS, max: 30, exact: true };
const NO_OTHER_KEYS = { hold: undefined, priorities: undefined, quotaMode: false, nextLimit: '' };

/** A bucket whose refill time has a fraction of a microsecond. */
const BUCKET = { maxTokens: 40, tokensPerFill: 210, fillIntervalMicros: 1_000_000 };
const LEASED = rateOf(
  leasedRate({
    rate: { kind: 'token_bucket', ...BUCKET, maxDebt: 0, minChargeHits: Number.POSITIVE_INFINITY },
    lease: LEASE,
    ...NO_OTHER_KEYS,
  }),
  false,
) as TimedRate;
const WINDOW = windowRate('second', 60, { lease: LEASE, countsOnlyAllowed: true });

const micros = (max: number) => fc.integer({ min: 0, max });
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      replica: fc.integer({ min: 0, max: REPLICAS - 1 }),
      hits: fc.array(fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, micros(3)), {
        minLength: 1,
        maxLength: 15,
      }),
      /** Times until Redis gets the call, and until its reply arrives. */
      there: fc.oneof({ weight: 3, arbitrary: micros(2 * MS) }, micros(60 * MS)),
      back: fc.oneof({ weight: 3, arbitrary: micros(2 * MS) }, micros(60 * MS)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), micros: micros(20 * MS) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), micros: micros(400 * MS) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('crash' as const),
      replica: fc.integer({ min: 0, max: REPLICAS - 1 }),
    }),
  },
);
const steps = fc.array(step, { minLength: 20, maxLength: 80 });

/** Hits that were allowed at a time. */
interface Spent {
  readonly atMicros: number;
  readonly hits: number;
}

describe.each([new RedisBench('redis-server'), new ClusterBench('redis-server')])(
  'three replicas of $name',
  (bench) => {
    beforeAll(() => bench.start());
    let run = 0;

    /** Runs a scenario. Returns what was allowed, and how many requests did not need Redis. */
    async function play(
      stores: readonly BucketStore[],
      rate: TimedRate,
      sequence: readonly (typeof step extends fc.Arbitrary<infer Value> ? Value : never)[],
    ): Promise<{ readonly spent: readonly Spent[]; readonly saved: number }> {
      const { clock } = bench;
      const key = `bucket${run++}`;
      const spent: Spent[] = [];
      let saved = 0;
      const open = (replica: number): LeaseStore =>
        new LeaseStore({
          store: stores[replica] as BucketStore,
          // The monotonic clocks of replicas have nothing in common.
          monotonicMicros: () => clock.wallMicros() - 1e15 * replica,
        });
      const replicas = stores.map((_, i) => open(i));
      const note = (hits: number, outcome: TakeOutcome, atMicros: number): void => {
        if (!outcome.overLimit && hits > 0) spent.push({ atMicros, hits });
      };
      for (const one of sequence) {
        if (one.kind === 'wait') clock.advance(one.micros);
        else if (one.kind === 'crash') {
          saved += (replicas[one.replica] as LeaseStore).stats.tripsSaved;
          replicas[one.replica] = open(one.replica);
        } else {
          const replica = replicas[one.replica] as LeaseStore;
          const late: Promise<void>[] = [];
          for (const hits of one.hits) {
            const result = replica.take([takeItem(key, rate, { hits })], Infinity);
            const take = (found: typeof result): void => {
              if (found instanceof Promise || found instanceof StorageError) throw found;
              const outcome = found[0] as TakeOutcome;
              // The store's outcomes count from its decision, and those of leases from now.
              note(hits, outcome, Math.min(clock.wallMicros(), outcome.decidedMicros ?? Infinity));
            };
            if (result instanceof Promise) late.push(result.then(take));
            else take(result);
          }
          clock.advance(one.there);
          // The calls of this turn are sent at its end.
          await new Promise(setImmediate);
          await new Promise(setImmediate);
          clock.advance(one.back);
          await Promise.all(late);
        }
      }
      return { spent, saved: replicas.reduce((sum, { stats }) => sum + stats.tripsSaved, saved) };
    }

    async function open(): Promise<readonly BucketStore[]> {
      const stores: BucketStore[] = [];
      for (let i = 0; i < REPLICAS; i++)
        stores.push(await bench.openWith({ clock: () => bench.clock.wallMicros(), tellsTime: true }));
      return stores;
    }

    test('G2: never exceed a token bucket in any interval', async () => {
      const stores = await open();
      let total = 0;
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const { spent, saved } = await play(stores, LEASED, sequence);
          total += saved;
          const inOrder = [...spent].sort((one, other) => one.atMicros - other.atMicros);
          for (const [from, { atMicros }] of inOrder.entries()) {
            let hits = 0;
            for (const last of inOrder.slice(from)) {
              hits += last.hits;
              const { maxTokens, tokensPerFill, fillIntervalMicros } = BUCKET;
              expectAtMost(
                hits,
                maxTokens + ((last.atMicros - atMicros) * tokensPerFill) / fillIntervalMicros,
              );
            }
          }
        }),
        runs(300),
      );
      expect(total).toBeGreaterThan(500);
    });

    test('G4: never exceed a window', async () => {
      const stores = await open();
      let total = 0;
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const { spent, saved } = await play(stores, WINDOW, sequence);
          total += saved;
          const byWindow = new Map<number, number>();
          for (const { atMicros, hits } of spent) {
            const start = Math.floor(atMicros / UNIT_MICROS.second);
            byWindow.set(start, (byWindow.get(start) ?? 0) + hits);
          }
          for (const hits of byWindow.values()) expectAtMost(hits, WINDOW.requestsPerUnit);
        }),
        runs(300),
      );
      expect(total).toBeGreaterThan(500);
    });

    test('G1: are granted what the same number of single takes would get', async () => {
      const [store] = (await open()) as [BucketStore];
      const item = fc.record({
        count: fc.option(fc.integer({ min: 2, max: 30 }), { nil: undefined }),
        wait: micros(200 * MS),
      });
      const rates = [LEASED, WINDOW, tokenBucketRate(20, 1, 100 * MS)];
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(item, { minLength: 1, maxLength: 5 }), { maxLength: 10 }),
          async (turns) => {
            const key = `granted${run++}`;
            const memory = new MemoryStore({ ...MEMORY, clock: bench.clock });
            for (const turn of turns) {
              bench.clock.advance(turn[0]?.wait ?? 0);
              for (const rate of rates) {
                const one: Take = takeItem(`${key}${rates.indexOf(rate)}`, rate);
                const results = turn.map(({ count }) =>
                  store.take([count === undefined ? one : { ...one, count }], Infinity),
                );
                for (const [i, { count = 1 }] of turn.entries()) {
                  const single = Array.from(
                    { length: count },
                    () => (memory.take([one]) as [TakeOutcome])[0],
                  );
                  const found = ((await results[i]) as readonly TakeOutcome[])[0] as TakeOutcome;
                  const { grant, decidedMicros, undoAtMicros, ...outcome } = found;
                  const { undoAtMicros: _, ...expected } = single.at(-1) as TakeOutcome;
                  expectEqual(outcome, expected);
                  if (count > 1)
                    expectEqual(grant?.granted, single.filter(({ overLimit }) => !overLimit).length);
                }
              }
            }
          },
        ),
        runs(200),
      );
    });
  },
);
