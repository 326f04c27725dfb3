import { beforeAll, describe, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { StorageError, type Take, type TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import type { HoldValues } from '../../../src/limiter/holds/hold.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { turn } from '../../../src/runtime/turns.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectAtLeast, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { newHoldId, oldestItem, settlementTake } from '../../support/limiter/hold-items.js';
import { HoldModel } from '../../support/limiter/hold-model.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { redisBenches } from '../../support/limiter/test-stores.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(180_000);

interface Bucket {
  readonly rate: Rate;
  /** Returns the hits of a take of `drawn`, which is from 0 to 60. */
  readonly hitsOf: (drawn: number) => number;
}

const same = (drawn: number): number => drawn;
const BUCKETS: Readonly<Record<string, Bucket>> = {
  slots: { rate: concurrencyRate(5), hitsOf: (drawn) => drawn % 4 },
  // More members than one command adds.
  wide: { rate: concurrencyRate(600), hitsOf: (drawn) => (drawn < 50 ? drawn : 10 * drawn) },
  bucket: { rate: tokenBucketRate(100, 10, 1_000_000, 100, Infinity), hitsOf: same },
  unpaid: { rate: tokenBucketRate(50, 50, 1_000_000, 0, Infinity), hitsOf: same },
  // The cost of a hit has a carry.
  thirds: { rate: tokenBucketRate(30, 3, 1_000_000, 10, Infinity), hitsOf: (drawn) => drawn % 20 },
  window: { rate: windowRate('minute', 100, { countsOnlyAllowed: true }), hitsOf: same },
  owing: { rate: windowRate('minute', 100, { maxDebt: 40, minChargeHits: Infinity }), hitsOf: same },
};
const NAMES = Object.keys(BUCKETS);
const LIFETIMES_MS = [2000, 30_000, 400_000];

const item = fc.record({
  name: fc.constantFrom(...NAMES),
  drawn: fc.nat(60),
  lifetimeMillis: fc.constantFrom(...LIFETIMES_MS),
  isPlain: fc.boolean(),
  enforcement: fc.constantFrom('enforce' as const, 'enforce' as const, 'observe' as const, 'quota' as const),
});
type DrawnItem = typeof item extends fc.Arbitrary<infer T> ? T : never;

const settlement = fc.record({
  which: fc.nat(),
  used: fc.nat(120),
  isForged: fc.nat(7).map((drawn) => drawn === 0),
});
const request = fc.oneof(
  // Equal requests share a step of the call.
  fc.record({
    kind: fc.constant('start' as const),
    items: fc.array(item, { minLength: 1, maxLength: 3 }),
    times: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 5 })),
  }),
  fc.record({
    kind: fc.constant('settle' as const),
    settlements: fc.array(settlement, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('end' as const),
    name: fc.constantFrom(...NAMES.filter((name) => BUCKETS[name]?.rate.kind !== 'concurrency')),
    used: fc.oneof(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 120 }),
      fc.constant(Number.MAX_SAFE_INTEGER),
    ),
    times: fc.integer({ min: 1, max: 3 }),
  }),
);
type DrawnRequest = typeof request extends fc.Arbitrary<infer T> ? T : never;

/** The requests of one turn of the event loop, which share a call of the script. */
const turnOfRequests = fc.record({
  waitMicros: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 100_000, max: 3_000_000 }),
    fc.integer({ min: 0, max: 10_000_000 }),
    fc.integer({ min: 0, max: 90_000_000 }),
  ),
  requests: fc.array(request, { minLength: 1, maxLength: 8 }),
});

/** A hold that was placed, for its settlement. */
interface Placed {
  readonly item: Take;
  readonly fullAtMicros: number;
  readonly refillMicros: number;
}

let run = 0;

function itemOf({ name, drawn, lifetimeMillis, isPlain, enforcement }: DrawnItem): Take {
  const { rate, hitsOf } = BUCKETS[name] as Bucket;
  const key = `run ${run} ${name}`;
  const hits = hitsOf(drawn);
  const base = { key, hashTagLength: `run ${run} `.length, rate, hits, refund: false, enforcement };
  if (hits === 0) return base;
  // Takes without holds use the same buckets. Slots are always held.
  if (isPlain && rate.kind !== 'concurrency') return base;
  return { ...base, holds: { id: newHoldId(), lifetimeMillis } };
}

/** Returns the items of the requests that a drawn request stands for, in turn. `placed` are the holds so far. */
function* requestsOf(drawn: DrawnRequest, placed: readonly Placed[]): Generator<readonly Take[]> {
  if (drawn.kind === 'settle') {
    // A request does not settle a hold twice.
    const chosen = new Map<Placed, Take>();
    for (const { which, used, isForged } of drawn.settlements) {
      const one = placed[which % placed.length];
      if (one === undefined) return;
      const take = settlementTake(one.item, one, used);
      const settles = take.settles as HoldValues;
      chosen.set(one, isForged ? { ...take, settles: { ...settles, id: 'f'.repeat(24) } } : take);
    }
    yield [...chosen.values()];
    return;
  }
  for (let time = 0; time < drawn.times; time++) {
    if (drawn.kind === 'start') yield drawn.items.map(itemOf);
    else {
      const { rate } = BUCKETS[drawn.name] as Bucket;
      const bucket = { key: `run ${run} ${drawn.name}`, hashTagLength: `run ${run} `.length, rate };
      yield [oldestItem({ ...bucket, hits: 0, refund: false, enforcement: 'observe' }, drawn.used)];
    }
  }
}

/** Waits until the memory store has removed all expired holds. It counts them as slots until then. */
async function removeExpired(memory: MemoryStore): Promise<void> {
  let before: number;
  do {
    before = memory.holdCount;
    memory.hasHolds();
    await turn();
  } while (memory.holdCount < before);
}

describe.each(redisBenches())('several requests with holds in a call to $name', (bench) => {
  beforeAll(() => bench.start());

  test('have the outcomes of memory and of a model, in the order of the requests', async () => {
    const { clock } = bench;
    // Large enough for all slots of a turn.
    const store = await bench.openWith({ clock: () => clock.wallMicros(), keysPerCall: 100_000 });
    let [requestCount, turnCount] = [0, 0];
    const callsBefore = store.calls;
    await fc.assert(
      fc.asyncProperty(fc.array(turnOfRequests, { minLength: 1, maxLength: 8 }), async (turns) => {
        run++;
        const memory = new MemoryStore({ ...MEMORY, clock });
        const model = new HoldModel();
        const placed: Placed[] = [];
        for (const { waitMicros, requests } of turns) {
          clock.advance(waitMicros);
          await removeExpired(memory);
          const expected: (readonly TakeOutcome[])[] = [];
          const found: ReturnType<typeof store.take>[] = [];
          for (const drawn of requests) {
            for (const takes of requestsOf(drawn, placed)) {
              found.push(store.take(takes, Infinity));
              const outcomes = memory.take(takes);
              expected.push(outcomes);
              model.check(takes, outcomes, clock.wallMicros());
              // Later requests of the same call may settle the hold.
              outcomes.forEach(({ hold, fullAtMicros = 0, refillMicros = 0 }, i) => {
                if (hold === 'placed') placed.push({ item: takes[i] as Take, fullAtMicros, refillMicros });
              });
            }
          }
          requestCount += expected.length;
          turnCount += expected.length > 0 ? 1 : 0;
          const results = await Promise.all(found);
          for (const result of results) if (result instanceof StorageError) throw result;
          expectEqual(results, expected);
        }
      }),
      runs(600),
    );
    expectEqual(store.calls - callsBefore, turnCount);
    expectAtLeast(requestCount, 5 * turnCount);
  });
});
