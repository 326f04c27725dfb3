import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { Take, TakeOutcome } from '../../../src/limiter/bucket-store.js';
import { type WindowRate, windowRate } from '../../../src/limiter/fixed-window.js';
import { refillWhole, type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { newHoldId, oldestItem, settlementTake } from '../../support/limiter/hold-items.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { memoryBench, redisBenches, takeFrom } from '../../support/limiter/test-stores.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(180_000);

/** The numbers of a limit with holds. A reload may change each of them. */
const limit = fc.record({
  most: fc.constantFrom(1, 50, 100, 1000),
  perFill: fc.constantFrom(1, 3, 50, 100),
  intervalMicros: fc.constantFrom(1_000, 999_999, 1_000_000, 3_600_000_000),
  maxDebt: fc.constantFrom(0, 0, 20, 500),
  /** The estimate, as a part of `most`. */
  part: fc.constantFrom(0.02, 0.5, 1),
});
type Limit = typeof limit extends fc.Arbitrary<infer T> ? T : never;

const step = fc.oneof(
  fc.record({ kind: fc.constant('reload' as const), limit }),
  fc.record({ kind: fc.constant('start' as const), times: fc.integer({ min: 1, max: 12 }) }),
  fc.record({
    kind: fc.constant('settle' as const),
    which: fc.nat(),
    times: fc.integer({ min: 1, max: 12 }),
    share: fc.constantFrom(0, 0, 0, 0.3, 1, 1.5),
  }),
  fc.record({
    kind: fc.constant('end' as const),
    times: fc.integer({ min: 1, max: 12 }),
    used: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 120 })),
  }),
  fc.record({
    kind: fc.constant('wait' as const),
    micros: fc.oneof(
      fc.integer({ min: 0, max: 20_000 }),
      fc.integer({ min: 0, max: 12_000_000 }),
      fc.integer({ min: 0, max: 500_000_000 }),
    ),
  }),
);

const LIFETIME_MS = 400_000;

interface Placed {
  readonly item: Take;
  readonly outcome: TakeOutcome;
  readonly endMicros: number;
}

function bucketOf({ most, perFill, intervalMicros, maxDebt }: Limit): TokenBucketRate {
  return tokenBucketRate(most, perFill, intervalMicros, maxDebt, Number.POSITIVE_INFINITY);
}

function windowOf({ most, maxDebt }: Limit): WindowRate {
  return windowRate('minute', most, { maxDebt, minChargeHits: Infinity, countsOnlyAllowed: true });
}

let run = 0;

describe.each([memoryBench(), ...redisBenches()])('holds that outlive a reload on $name', (bench) => {
  beforeAll(() => bench.start());

  test.each([
    { frees: false, isOldest: false },
    { frees: true, isOldest: false },
    { frees: false, isOldest: true },
  ])(
    'never make room for more than the larger limit (freed: $frees, oldest: $isOldest)',
    async ({ frees, isOldest }) => {
      const { clock } = bench;
      const store = await bench.open();
      await fc.assert(
        fc.asyncProperty(limit, fc.array(step, { minLength: 3, maxLength: 30 }), async (first, steps) => {
          run++;
          const memory = new MemoryStore({ ...MEMORY, clock });
          const began = clock.wallMicros();
          let now = first;
          let placed: Placed[] = [];
          /** Time in which everything refills that requests have taken and certainly not got back. */
          let keptMicros = 0;
          /** Maximum error of it: less than a microsecond for each hold that has ended. */
          let errorMicros = 1;
          const ask = async (take: Take): Promise<TakeOutcome> => {
            const [found] = await takeFrom(store, take);
            // Hits of expired holds are given back at the rate of the next call in Redis, of the latest hold in memory.
            if (!frees) expectEqual([found], memory.take([take]));
            return found as TakeOutcome;
          };
          const windowKey = `run ${run} window`;
          const bucket = (rate: TokenBucketRate | WindowRate): Take => ({
            key: rate.kind === 'window' ? windowKey : `run ${run} bucket`,
            hashTagLength: `run ${run} `.length,
            rate,
            hits: Math.max(1, Math.floor(now.most * now.part)),
            refund: false,
            enforcement: 'enforce',
          });
          /** Records an end. It replaces the cost of the hold by the cost of the use, but never raises it. */
          const ended = (one: Placed, current: TokenBucketRate | WindowRate, used: number): void => {
            const { rate, hits } = one.item;
            placed = placed.filter((other) => other !== one);
            errorMicros++;
            if (rate.kind !== 'token_bucket' || current.kind === 'window' || used >= hits) return;
            keptMicros -= Math.max(0, refillWhole(rate, hits) - refillWhole(current, used));
          };
          const removeExpired = (): void => {
            for (const one of placed.filter(({ endMicros }) => endMicros <= clock.wallMicros()))
              ended(one, bucketOf(now), frees ? 0 : one.item.hits);
          };
          const start = async (): Promise<void> => {
            for (const rate of [bucketOf(now), windowOf(now)]) {
              const holds = { id: newHoldId(), lifetimeMillis: LIFETIME_MS, freesUnknown: frees };
              const item = { ...bucket(rate), holds };
              const outcome = await ask(item);
              if (outcome.hold !== 'placed') continue;
              placed.push({ item, outcome, endMicros: clock.wallMicros() + 1000 * LIFETIME_MS });
              if (rate.kind === 'window') continue;
              keptMicros += refillWhole(rate, item.hits);
              // An allowed take leaves the bucket no emptier than empty.
              expectAtMost(keptMicros, clock.wallMicros() - began + rate.fillWhole + errorMicros);
            }
          };
          const settle = async (one: Placed, share: number): Promise<void> => {
            const { item, outcome } = one;
            const used = Math.floor(item.hits * share);
            const rate = item.rate.kind === 'window' ? windowOf(now) : bucketOf(now);
            const { hold } = await ask(settlementTake({ ...item, rate }, outcome, used));
            expect(hold).toBe('settled');
            ended(one, rate, used);
          };
          for (const one of steps) {
            if (one.kind === 'wait') {
              clock.advance(one.micros);
              removeExpired();
            } else if (one.kind === 'reload') now = one.limit;
            else if (one.kind === 'start') for (let i = 0; i < one.times; i++) await start();
            else if (one.kind === 'settle' && !isOldest) {
              for (let i = 0; i < one.times && placed.length > 0; i++)
                await settle(placed[one.which % placed.length] as Placed, one.share);
            } else if (one.kind === 'end' && isOldest) {
              const rates = [bucketOf(now), windowOf(now)];
              for (const rate of Array.from({ length: one.times }, () => rates).flat()) {
                const oldest = placed.find(({ item }) => item.rate.kind === rate.kind);
                const { heldHits } = await ask(oldestItem(bucket(rate), one.used));
                expect(heldHits).toBe(oldest?.item.hits);
                if (oldest !== undefined) ended(oldest, rate, one.used);
              }
            }
          }
        }),
        runs(300),
      );
    },
  );

  test('give back nothing that has refilled before a reload to a slower limit', async () => {
    const store = await bench.open();
    for (const maxDebt of [0, 100]) {
      run++;
      const fast = tokenBucketRate(1000, 100, 1_000_000, maxDebt, Infinity);
      const slow = tokenBucketRate(100, 100, 3_600_000_000, maxDebt, Infinity);
      const start = (rate: TokenBucketRate): Take => ({
        key: `run ${run} bucket`,
        hashTagLength: `run ${run} `.length,
        rate,
        hits: 50,
        refund: false,
        enforcement: 'enforce',
        holds: { id: newHoldId(), lifetimeMillis: LIFETIME_MS },
      });
      const placed: Placed[] = [];
      for (let i = 0; i < 20; i++) {
        const take = start(fast);
        const [outcome] = await takeFrom(store, take);
        expect(outcome?.hold).toBe('placed');
        placed.push({ item: take, outcome: outcome as TakeOutcome, endMicros: 0 });
      }
      bench.clock.advance(10_000_000);
      let passed = 0;
      for (const { item, outcome } of placed) {
        const [found] = await takeFrom(store, start(slow));
        if (found?.overLimit === false) passed += 50;
        await takeFrom(store, settlementTake({ ...item, rate: slow }, outcome));
      }
      const [last] = await takeFrom(store, start(slow));
      if (last?.overLimit === false) passed += 50;
      expect(passed).toBe(100);
    }
  });
});
