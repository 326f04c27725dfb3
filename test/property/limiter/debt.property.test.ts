import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { MAX_FILL_MICROS } from '../../../src/limiter/rate-algorithm.js';
import { refillWhole, type TokenBucketRate, tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../../src/limiter/window-unit.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import {
  AWKWARD_RATES,
  arbitraryHits,
  arbitraryRate,
  arbitrarySpan,
} from '../../support/limiter/arbitrary-takes.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { takeItem } from '../../support/limiter/take-items.js';
import { TokenLevel } from '../../support/limiter/token-level.js';

/** A token bucket with a debt, within the range that a policy allows. */
const owingRate: fc.Arbitrary<TokenBucketRate> = fc
  .tuple(
    arbitraryRate(),
    fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 0xffff_ffff })),
  )
  .filter(([rate, debt]) => refillWhole(rate, rate.maxTokens + debt) < MAX_FILL_MICROS / 10)
  .map(([{ maxTokens, tokensPerFill, fillIntervalMicros }, debt]) =>
    tokenBucketRate(maxTokens, tokensPerFill, fillIntervalMicros, debt),
  );

const tokenSteps = owingRate.chain((rate) =>
  fc.record({
    rate: fc.constant(rate),
    steps: fc.array(
      fc.record({
        wait: arbitrarySpan(rate),
        hits: fc.oneof(
          arbitraryHits(rate),
          fc.integer({ min: Math.max(0, rate.maxDebt - 2), max: rate.maxDebt + rate.maxTokens + 2 }),
        ),
        refund: fc.boolean(),
      }),
      { minLength: 1, maxLength: 60 },
    ),
  }),
);

describe('a token bucket with debt', () => {
  test('has the outcomes of a model with big integers', () => {
    fc.assert(
      fc.property(tokenSteps, ({ rate, steps }) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock });
        const level = new TokenLevel(rate, clock.monotonic);
        for (const { wait, hits, refund } of steps) {
          clock.advance(wait);
          const { uncollectedHits, ...outcome } = store.take([takeItem('a', rate, { hits, refund })])[0]!;
          expectEqual(outcome, {
            ...level.take(hits, refund, clock.monotonic),
            undoAtMicros: clock.monotonic,
            cached: false,
          });
          const isCharge = hits > 1 && !refund;
          expectSame(outcome.overLimit && isCharge, false);
          expectAtMost(outcome.remaining, rate.maxTokens);
          expectSame(uncollectedHits === 0 || isCharge, true);
        }
      }),
      runs(500),
    );
  });

  test('owes at most what was charged and not forgiven, and at most max_debt', () => {
    const steps = tokenSteps.filter(
      ({ rate: { refillNumerator, refillDenominator } }) => refillNumerator >= 2 * refillDenominator,
    );
    fc.assert(
      fc.property(steps, ({ rate, steps }) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock });
        const peek = takeItem('a', rate, { hits: 0 });
        let charged = 0;
        for (const { wait, hits, refund } of steps) {
          clock.advance(wait);
          const { uncollectedHits } = store.take([takeItem('a', rate, { hits, refund })])[0]!;
          // Forgiven hits are rounded to the nearest token.
          if (hits > 1 && !refund) charged += hits - uncollectedHits + 1;
          // The time until the next token shows the debt.
          const { overLimit, waitMicros } = store.take([peek])[0]!;
          const owed = overLimit ? (waitMicros * rate.refillDenominator) / rate.refillNumerator - 1 : 0;
          expectAtMost(owed, rate.maxDebt + 1);
          expectAtMost(owed, charged + 1);
        }
      }),
      runs(300),
    );
  });

  test('reports the hits that it forgave, if a token takes two microseconds or more', () => {
    const rates = owingRate.filter(
      ({ refillNumerator, refillDenominator }) => refillNumerator >= 2 * refillDenominator,
    );
    fc.assert(
      fc.property(
        rates.chain((rate) => fc.tuple(fc.constant(rate), fc.array(arbitraryHits(rate), { minLength: 1 }))),
        ([rate, charges]) => {
          const store = new MemoryStore({ ...MEMORY, clock: new FakeClock() });
          // The clock does not advance. Charges take the tokens, then the maximum debt. All further hits are forgiven.
          let room = rate.maxTokens + rate.maxDebt;
          for (const charge of charges) {
            const hits = Math.max(2, charge);
            const expected = Math.max(0, hits - room);
            expectSame(store.take([takeItem('a', rate, { hits })])[0]!.uncollectedHits, expected);
            room = Math.max(0, room - hits);
          }
        },
      ),
      runs(300),
    );
  });
});

const windowSteps = fc
  .record({
    unit: fc.constantFrom('minute' as const, 'hour' as const, 'day' as const),
    limit: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 0xffff_ffff })),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    multiplier: fc.integer({ min: 1, max: 7 }),
    timeZone: fc.constantFrom(undefined, 'Europe/Berlin', 'America/Havana'),
  })
  .map(({ unit, limit, share, multiplier, timeZone }) => {
    const maxDebt = Math.max(1, Math.round(limit * share));
    return timeZone === undefined
      ? windowRate(unit, limit, { multiplier, maxDebt })
      : windowRate('day', limit, { timeZone, maxDebt });
  })
  .chain((rate) =>
    fc.record({
      rate: fc.constant(rate),
      steps: fc.array(
        fc.record({
          wait: fc.oneof(
            fc.constant(0),
            fc.integer({ min: 0, max: rate.lengthMicros }),
            fc.integer({ min: 0, max: 3 * rate.lengthMicros }),
          ),
          hits: fc.oneof(
            { arbitrary: fc.integer({ min: 0, max: 3 }), weight: 2 },
            { arbitrary: fc.integer({ min: 0, max: 2 * rate.requestsPerUnit + 2 }), weight: 2 },
            { arbitrary: fc.constant(Number.MAX_SAFE_INTEGER), weight: 1 },
          ),
          refund: fc.boolean(),
        }),
        { minLength: 1, maxLength: 60 },
      ),
    }),
  );

describe('a window with debt', () => {
  test('allows and charges at most the limits and max_debt, over any sequence of windows', () => {
    fc.assert(
      fc.property(windowSteps, fc.boolean(), ({ rate, steps }, countDeniedHits) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
        // Hits that were allowed or charged in each window, minus forgiven hits. Refunds are ignored, which only
        // loosens the bound.
        const taken = new Map<number, number>();
        for (const { wait, hits, refund } of steps) {
          clock.advance(wait);
          const { overLimit, uncollectedHits } = store.take([takeItem('a', rate, { hits, refund })])[0]!;
          expectSame(overLimit && (refund || hits > 1), false);
          if (overLimit || refund) continue;
          const start = rate.startOf(clock.wall);
          taken.set(start, (taken.get(start) ?? 0) + (hits - uncollectedHits));
        }
        if (steps.some(({ refund }) => refund)) return;
        const starts = [...taken.keys()];
        for (let from = 0; from < starts.length; from++) {
          let sum = 0;
          let windows = 0;
          let at = starts[from] as number;
          for (let to = from; to < starts.length; to++) {
            while (at <= (starts[to] as number)) {
              windows++;
              at = rate.endOf(at);
            }
            sum += taken.get(starts[to] as number) as number;
            expectAtMost(sum, rate.requestsPerUnit * windows + rate.maxDebt);
          }
        }
      }),
      runs(600),
    );
  });

  test('has the outcomes of two counts: the current window, and the debt of the previous one', () => {
    fc.assert(
      fc.property(windowSteps, ({ rate, steps }) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock });
        const { requestsPerUnit: limit, maxDebt } = rate;
        let window = rate.startOf(clock.wall);
        let count = 0;
        for (const { wait, hits, refund } of steps) {
          clock.advance(wait);
          const now = rate.startOf(clock.wall);
          while (window < now) {
            count = Math.max(0, count - limit);
            window = rate.endOf(window);
          }
          const { waitMicros, ...outcome } = store.take([takeItem('a', rate, { hits, refund })])[0]!;
          const before = count;
          if (refund) count = Math.max(0, count - hits);
          else if (hits > 1) count = Math.min(limit + maxDebt, count + hits);
          else if (hits === 1 && count < limit) count++;
          const overLimit = !refund && hits < 2 && before >= limit;
          expectEqual(outcome, {
            overLimit,
            remaining: overLimit ? 0 : Math.max(0, limit - count),
            used: count,
            uncollectedHits: !refund && hits > 1 ? hits - (count - before) : 0,
            undoAtMicros: window,
            cached: false,
          });
          // The time until a hit is allowed, or until the window ends.
          let end = rate.endOf(window);
          if (overLimit && count - limit >= limit) end = rate.endOf(end);
          expectSame(waitMicros, end - clock.wall);
        }
      }),
      runs(600),
    );
  });
});

const step = (rate: TokenBucketRate) =>
  fc.record({ wait: arbitrarySpan(rate), hits: arbitraryHits(rate), refund: fc.boolean() });
const sequence = (minLength: number) =>
  arbitraryRate().chain((rate) =>
    fc.record({ rate: fc.constant(rate), steps: fc.array(step(rate), { minLength, maxLength: 60 }) }),
  );

interface Passed {
  readonly at: number;
  /** Number of tokens taken; negative for a refund. */
  readonly tokens: number;
}

/** Expects the guarantee of a bucket for every interval between two takes: at most max_tokens + rate × length. */
function expectBound(rate: TokenBucketRate, passed: readonly Passed[]): void {
  // With v = taken - refilled, in 1/q of a token's time: v may rise by at most the capacity.
  let value = 0n;
  let lowest: bigint | undefined;
  for (const { at, tokens } of passed) {
    const before = value - BigInt(at) * BigInt(rate.refillDenominator);
    lowest = lowest === undefined || before < lowest ? before : lowest;
    value += BigInt(tokens) * BigInt(rate.refillNumerator);
    const risen = value - BigInt(at) * BigInt(rate.refillDenominator) - lowest;
    expectSame(risen <= BigInt(rate.maxTokens) * BigInt(rate.refillNumerator), true);
  }
}

describe('a token bucket', () => {
  test('has the outcomes of a model with big integers', () => {
    fc.assert(
      fc.property(sequence(1), ({ rate, steps }) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock });
        const level = new TokenLevel(rate, clock.monotonic);
        for (const { wait, hits, refund } of steps) {
          clock.advance(wait);
          // The mark belongs to the take, not to the state; storage/sharded-orders.property.test.ts tests it.
          const { undoAtMicros: _, ...outcome } = store.take([takeItem('a', rate, { hits, refund })])[0]!;
          expectEqual(outcome, {
            ...level.take(hits, refund, clock.monotonic),
            uncollectedHits: 0,
            cached: false,
          });
        }
      }),
      runs(400),
    );
  });

  test('allows at most max_tokens + rate x length in any interval, with refunds', () => {
    fc.assert(
      fc.property(sequence(20), ({ rate, steps }) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock });
        const passed: Passed[] = [];
        for (const { wait, hits, refund } of steps) {
          clock.advance(wait);
          const [outcome] = store.take([takeItem('a', rate, { hits, refund })]);
          // Refunds to a full bucket are lost. Counting all refunds keeps the bound true, counting none keeps it sharp.
          if (!outcome!.overLimit) passed.push({ at: clock.monotonic, tokens: refund ? -hits : hits });
        }
        expectBound(rate, passed);
      }),
      runs(200),
    );
  });

  // 3 per second, 7 per minute, a million per day, 299,993 per second; the middle two for a third of a second.
  test.each([
    [AWKWARD_RATES[0]!, 300_000],
    [AWKWARD_RATES[3]!, 100_000],
    [AWKWARD_RATES[4]!, 100_000],
    [AWKWARD_RATES[5]!, 300_000],
  ])(
    'allows exactly max_tokens and the refilled tokens of 300,000 single hits per second: %j',
    (rate, hits) => {
      const clock = new FakeClock();
      const store = new MemoryStore({ ...MEMORY, clock });
      const item = [takeItem('a', rate)];
      const start = clock.monotonic;
      let passed = 0;
      for (let hit = 0; hit < hits; hit++) {
        clock.monotonic = start + Math.floor((hit * 10) / 3);
        if (!store.take(item)[0]!.overLimit) passed++;
      }
      const refilled = Number(
        (BigInt(clock.monotonic - start) * BigInt(rate.refillDenominator)) / BigInt(rate.refillNumerator),
      );
      expectSame(passed, Math.min(hits, rate.maxTokens + refilled));
    },
  );

  test('allows at most one full bucket per change if the limit changes each millisecond', () => {
    const rates = [tokenBucketRate(100, 7, UNIT_MICROS.minute), tokenBucketRate(10, 3, UNIT_MICROS.second)];
    const clock = new FakeClock();
    const store = new MemoryStore({ ...MEMORY, clock });
    let passed = 0;
    for (let hit = 0; hit < 100_000; hit++) {
      clock.advance(hit % 3 === 0 ? 4 : 3);
      const rate = rates[Math.floor(hit / 300) % 2]!;
      if (!store.take([takeItem('a', rate)])[0]!.overLimit) passed++;
    }
    expectAtMost(passed, 100 + 1 + 333 * 100);
  });

  test('allows at most one full bucket of the new limit after a limit change', () => {
    fc.assert(
      fc.property(sequence(1), sequence(1), (before, after) => {
        const clock = new FakeClock();
        const store = new MemoryStore({ ...MEMORY, clock });
        for (const { wait, hits, refund } of before.steps) {
          clock.advance(wait);
          store.take([takeItem('a', before.rate, { hits, refund })]);
        }
        const passed: Passed[] = [];
        for (const { wait, hits, refund } of after.steps) {
          clock.advance(wait);
          const [outcome] = store.take([takeItem('a', after.rate, { hits, refund })]);
          if (!outcome!.overLimit) passed.push({ at: clock.monotonic, tokens: refund ? -hits : hits });
        }
        expectBound(after.rate, passed);
        // The bucket always recovers: after the longer time to fill it is full.
        clock.advance(Math.max(before.rate.fillWhole, after.rate.fillWhole) + 1);
        expectSame(store.take([takeItem('a', after.rate, { hits: 0 })])[0]!.remaining, after.rate.maxTokens);
      }),
      runs(200),
    );
  });
});
