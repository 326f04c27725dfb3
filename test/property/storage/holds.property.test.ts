import { beforeAll, describe, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { Enforcement, Take } from '../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import type { HoldValues } from '../../../src/limiter/holds/hold.js';
import type { Rate } from '../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { ClusterBench } from '../../support/limiter/cluster-bench.js';
import { newHoldId, oldestItem, settlementTake } from '../../support/limiter/hold-items.js';
import { HoldModel } from '../../support/limiter/hold-model.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { redisBenches, type TestBench, takeFrom } from '../../support/limiter/test-stores.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(180_000);

/** Rates whose takes hold. The maximum may change between requests, as after a reload. */
const RATES: Readonly<Record<string, readonly Rate[]>> = {
  slots: [concurrencyRate(3), concurrencyRate(5)],
  bucket: [tokenBucketRate(100, 10, 1_000_000, 100, Infinity)],
  thirds: [tokenBucketRate(30, 3, 1_000_000, 10, Infinity)],
  unpaid: [tokenBucketRate(50, 50, 1_000_000, 0, Infinity)],
  window: [windowRate('minute', 100, { countsOnlyAllowed: true })],
  owing: [windowRate('minute', 100, { maxDebt: 40, minChargeHits: Infinity })],
  // The cost of their hits needs more than 53 bits.
  huge: [tokenBucketRate(0xffff_ffff, 0xffff_fffb, 86_400_000_000, 0, Infinity)],
  'huge owing': [tokenBucketRate(0xffff_fffe, 0xfff0_fff1, 86_399_999_999, 0xf000_0001, Infinity)],
  // Rates of holds that give their hits back when they expire.
  'bucket freed': [tokenBucketRate(100, 10, 1_000_000, 100, Infinity)],
  'thirds freed': [tokenBucketRate(30, 3, 1_000_000, 10, Infinity)],
  'slow freed': [tokenBucketRate(50, 1, 10_000_000, 0, Infinity)],
  'window freed': [windowRate('minute', 100, { countsOnlyAllowed: true })],
};
/** Factor of the hits of a rate. */
const FACTORS: Readonly<Record<string, number>> = { huge: 71_582_789, 'huge owing': 71_582_789 };
const NAMES = Object.keys(RATES);
const isFreed = (name: string) => name.endsWith('freed');
const LIFETIMES_MS = [1, 2000, 30_000, 400_000];

interface AskedItem {
  readonly name: string;
  readonly hits: number;
  readonly lifetime: number;
  readonly enforcement: Enforcement;
  readonly rate: number;
}

const item: fc.Arbitrary<AskedItem> = fc.record({
  name: fc.constantFrom(...NAMES),
  hits: fc.integer({ min: 0, max: 60 }),
  lifetime: fc.constantFrom(...LIFETIMES_MS),
  enforcement: fc.constantFrom('enforce' as const, 'observe' as const, 'quota' as const),
  rate: fc.nat(),
});
const step = fc.oneof(
  fc.record({ kind: fc.constant('start' as const), items: fc.array(item, { minLength: 1, maxLength: 3 }) }),
  fc.record({
    kind: fc.constant('settle' as const),
    which: fc.nat(),
    used: fc.integer({ min: 0, max: 120 }),
    /** A field that differs from the hold, as in a forged token. */
    forged: fc.constantFrom(
      undefined,
      undefined,
      undefined,
      'id',
      'amount',
      'fullAtMicros',
      'lifetimeMillis',
      'refillMicros',
    ),
    by: fc.constantFrom(-1, 1, 2),
  }),
  fc.record({
    kind: fc.constant('end' as const),
    name: fc.constantFrom(...NAMES.filter((name) => name !== 'slots' && !isFreed(name))),
    used: fc.oneof(fc.integer({ min: 1, max: 120 }), fc.constant(Number.MAX_SAFE_INTEGER)),
    rate: fc.nat(),
  }),
  fc.record({
    kind: fc.constant('wait' as const),
    micros: fc.oneof(fc.integer({ min: 0, max: 3_000_000 }), fc.integer({ min: 0, max: 90_000_000 })),
  }),
);

let run = 0;

/** A hold that a store placed, for its settlement. */
interface Placed {
  readonly item: Take;
  readonly fullAtMicros: number;
  readonly refillMicros: number;
}

function rateOf(name: string, at: number): Rate {
  const rates = RATES[name] as readonly Rate[];
  return rates[at % rates.length] as Rate;
}

function itemsOf(asked: readonly AskedItem[]): Take[] {
  return asked.map(({ name, hits, lifetime, enforcement, rate }) => {
    const key = `run ${run} ${name}`;
    const slots = name === 'slots' ? hits % 5 : hits * (FACTORS[name] ?? 1);
    const base = {
      key,
      hashTagLength: `run ${run} `.length,
      rate: rateOf(name, rate),
      refund: false,
      enforcement,
    };
    const freesUnknown = isFreed(name);
    return slots === 0 && !freesUnknown
      ? { ...base, hits: 0 }
      : { ...base, hits: slots, holds: { id: newHoldId(), lifetimeMillis: lifetime, freesUnknown } };
  });
}

/** Returns the settlement of a hold, with another value in the field `forged`. */
function settlement(
  { item: taken, ...times }: Placed,
  used: number,
  forged: string | undefined,
  by: number,
): Take {
  const take = settlementTake(taken, times, used);
  if (forged === undefined) return take;
  const value =
    forged === 'id'
      ? 'f'.repeat(24)
      : ((take.settles as never)[forged] as number) + (forged === 'amount' ? by : Math.abs(by));
  return { ...take, settles: { ...(take.settles as HoldValues), [forged]: value } };
}

const benches: readonly TestBench[] = [...redisBenches(), new ClusterBench('redis-server')];

describe.each(benches)('holds on $name', (bench) => {
  beforeAll(() => bench.start());

  test('have the outcomes of memory and of a model, over all interleavings', async () => {
    const store = await bench.open();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        run++;
        const { clock } = bench;
        const memory = new MemoryStore({ ...MEMORY, clock });
        const model = new HoldModel();
        const placed: Placed[] = [];
        for (const one of steps) {
          if (one.kind === 'wait') {
            clock.advance(one.micros);
            continue;
          }
          let takes: Take[];
          if (one.kind === 'start') takes = itemsOf(one.items);
          else if (one.kind === 'end') {
            const { name, used, rate } = one;
            const [taken] = itemsOf([{ name, hits: 0, rate, lifetime: 0, enforcement: 'enforce' }]);
            const hits = Math.min(used * (FACTORS[name] ?? 1), Number.MAX_SAFE_INTEGER);
            takes = [oldestItem(taken as Take, hits)];
          } else {
            if (placed.length === 0) continue;
            const chosen = placed[one.which % placed.length] as Placed;
            // The id of a slot depends on its lifetime, but the ids of this test do not.
            const isSlot = chosen.item.rate.kind === 'concurrency';
            const forged = isSlot && one.forged !== 'id' && one.forged !== 'amount' ? undefined : one.forged;
            takes = [settlement(chosen, one.used, forged, one.by)];
          }
          const found = await takeFrom(store, ...takes);
          expectEqual(found, memory.take(takes));
          model.check(takes, found, clock.wallMicros());
          found.forEach(({ hold, fullAtMicros = 0, refillMicros = 0 }, i) => {
            if (hold === 'placed') placed.push({ item: takes[i] as Take, fullAtMicros, refillMicros });
          });
        }
      }),
      runs(900),
    );
  });
});
