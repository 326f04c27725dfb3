import { test } from '@jest/globals';
import fc from 'fast-check';
import { CODE } from '../../src/codec/messages.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Rate } from '../../src/limiter/rate.js';
import type { TakeOutcome } from '../../src/limiter/rate-algorithm.js';
import { tokenBucketRate } from '../../src/limiter/token-bucket.js';
import { UNIT_MICROS } from '../../src/limiter/window-unit.js';
import { MemoryStore } from '../../src/storage/memory/memory-store.js';
import { expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { MEMORY } from '../support/limiter/store-options.js';
import { takeItem } from '../support/limiter/take-items.js';
import { Decider, descriptor } from '../support/policy/decider.js';

const tokens = fc.record({
  kind: fc.constant('tokens' as const),
  max: fc.integer({ min: 1, max: 12 }),
  perFill: fc.integer({ min: 1, max: 7 }),
  seconds: fc.integer({ min: 1, max: 90 }),
});
const window = fc.record({
  kind: fc.constant('window' as const),
  max: fc.integer({ min: 0, max: 12 }),
  unit: fc.constantFrom('second' as const, 'minute' as const),
});
type Limit = { readonly kind: 'tokens' | 'window'; readonly max: number } & (
  | { readonly kind: 'tokens'; readonly perFill: number; readonly seconds: number }
  | { readonly kind: 'window'; readonly unit: 'second' | 'minute' }
);

const steps = fc.array(
  fc.record({
    wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 20_000_000 })),
    hits: fc.integer({ min: 1, max: 4 }),
  }),
  { minLength: 1, maxLength: 60 },
);

function policyOf(limits: readonly Limit[]): string {
  const items = limits.map((limit) =>
    limit.kind === 'tokens'
      ? `{ token_bucket: { max_tokens: ${limit.max}, tokens_per_fill: ${limit.perFill}, fill_interval: ` +
        `${limit.seconds}s } }`
      : `{ unit: ${limit.unit}, requests_per_unit: ${limit.max} }`,
  );
  return `domain: d\ndescriptors: [{ key: k, rate_limits: [${items.join(', ')}] }]\n`;
}

function rateOf(limit: Limit): Rate {
  return limit.kind === 'tokens'
    ? tokenBucketRate(limit.max, limit.perFill, limit.seconds * UNIT_MICROS.second)
    : windowRate(limit.unit, limit.max);
}

/** Creates a decider for a list of limits. Its windows do not count the hits of denied requests. */
function listOf(limits: readonly Limit[]): Decider {
  const lateBound: { store?: MemoryStore } = {};
  const decider = new Decider(policyOf(limits), {
    store: { take: (takes) => (lateBound.store as MemoryStore).take(takes), close: async () => {} },
  });
  lateBound.store = new MemoryStore({ ...MEMORY, clock: decider.clock, countDeniedHits: false });
  return decider;
}

const NEVER = takeItem('?', tokenBucketRate(1, 1, UNIT_MICROS.second), { hits: 2 });

test('a list of limits allows the requests that each limit allows, and only these take from each limit', () => {
  const limits = fc.array(fc.oneof(tokens, window), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(limits, steps, (list, requests) => {
      const decider = listOf(list);
      // Each limit in a separate bucket, which counts only the requests that the list allows.
      const separateLimits = new MemoryStore({ ...MEMORY, clock: decider.clock, countDeniedHits: false });
      for (const { wait, hits } of requests) {
        decider.clock.advance(wait);
        const takes = list.map((limit, i) => takeItem(String(i), rateOf(limit), { hits }));
        const fits = takes.map((take) => separateLimits.take([take, NEVER])[0]?.overLimit === false);
        const { overallCode, statuses } = decider.answer([descriptor(['k=x'])], hits);
        const passes = fits.every(Boolean);
        expectSame(overallCode, passes ? CODE.OK : CODE.OVER_LIMIT);
        const outcomes = takes.map((take) => separateLimits.take(passes ? [take] : [take, NEVER])[0]);
        if (passes) {
          const least = Math.min(...outcomes.map((outcome) => outcome?.remaining ?? 0));
          expectSame(statuses[0]?.limitRemaining, least);
          continue;
        }
        const resets = takes.flatMap(({ rate }, i) => {
          const { overLimit, waitMicros } = outcomes[i] as TakeOutcome;
          const seconds = Math.ceil(waitMicros / 1e6) || rate.periodSeconds(0);
          return overLimit ? [{ never: hits > rate.reportedLimit, seconds }] : [];
        });
        // If some limits can never allow the hits, only these limits determine the reset.
        const relevant = resets.some(({ never }) => never) ? resets.filter(({ never }) => never) : resets;
        const longest = Math.max(...relevant.map(({ seconds }) => seconds));
        expectSame(statuses[0]?.durationUntilResetSeconds, longest);
      }
    }),
    runs(500),
  );
});

test('a list of token buckets allows a burst of the smallest capacity', () => {
  fc.assert(
    fc.property(fc.array(tokens, { minLength: 1, maxLength: 5 }), (list) => {
      const decider = new Decider(policyOf(list));
      let passed = 0;
      for (let i = 0; i < 20; i++) {
        if (decider.answer([descriptor(['k=x'])]).overallCode === CODE.OK) passed++;
      }
      expectSame(passed, Math.min(...list.map(({ max }) => max)));
    }),
    runs(200),
  );
});
