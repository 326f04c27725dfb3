import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import type { TokenBucketRate } from '../../src/limiter/token-bucket.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { expectAtMost, expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { FakeClock } from '../support/clock/fake-clock.js';
import {
  AWKWARD_RATES,
  arbitraryHits,
  arbitraryRate,
  arbitrarySpan,
} from '../support/limiter/arbitrary-takes.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { TokenLevel } from '../support/limiter/token-level.js';

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
