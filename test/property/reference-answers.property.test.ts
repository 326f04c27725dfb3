import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Descriptor } from '../../src/codec/messages.js';
import { runs } from '../support/assert/runs.js';
import { Decider, descriptor } from '../support/policy/decider.js';
import { type ModelRule, ReferenceModel } from '../support/reference/reference-model.js';

const RULES = 5;

const rule: fc.Arbitrary<ModelRule> = fc.record({
  unit: fc.constantFrom('second', 'minute', 'hour'),
  limit: fc.integer({ min: 0, max: 4 }),
  unlimited: fc.integer({ max: 5, min: 0 }).map((dice) => dice === 0),
  shadow: fc.integer({ max: 3, min: 0 }).map((dice) => dice === 0),
  quota: fc.boolean(),
  replaces: fc.option(fc.integer({ min: 0, max: RULES - 1 }), { nil: undefined, freq: 4 }),
});
const rules = fc
  .array(rule, { minLength: RULES, maxLength: RULES })
  // A rule that replaces itself is an error of the policy.
  .map((all) => all.map((one, i) => (one.replaces === i ? { ...one, replaces: undefined } : one)));

const hits = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constant(Number.MAX_SAFE_INTEGER));
const asked: fc.Arbitrary<Descriptor> = fc
  .record({
    // The last ones match no rule.
    key: fc.integer({ min: 0, max: RULES }).map((i) => `r${i}`),
    hitsAddend: fc.option(hits, { nil: undefined, freq: 1 }),
    limit: fc.option(
      fc.record({ requestsPerUnit: fc.integer({ min: 0, max: 3 }), unit: fc.integer({ min: 1, max: 3 }) }),
      { nil: undefined, freq: 5 },
    ),
  })
  .map(({ key, ...more }) => descriptor([`${key}=x`], more));
const request = fc.record({
  descriptors: fc.array(asked, { minLength: 1, maxLength: 5 }),
  hitsAddend: fc.integer({ min: 0, max: 3 }),
  waitMicros: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 90_000_000 })),
});

function policyText(all: readonly ModelRule[]): string {
  const nodes = all.map(({ unit, limit, unlimited, shadow, quota, replaces }, i) => ({
    key: `r${i}`,
    shadow_mode: shadow,
    quota_mode: quota,
    metadata: { [`m${i}`]: true },
    rate_limit: {
      name: `n${i}`,
      ...(unlimited ? { unlimited } : { unit, requests_per_unit: limit }),
      ...(replaces !== undefined && { replaces: [{ name: `n${replaces}` }] }),
    },
  }));
  return JSON.stringify({ domain: 'd', descriptors: nodes });
}

test('window rules have the answers of the reference in every mode', () => {
  const limitHeaders = { limit: 'l', remaining: 'm', reset: 'r' };
  fc.assert(
    fc.property(
      rules,
      fc.boolean(),
      fc.boolean(),
      fc.array(request, { minLength: 1, maxLength: 12 }),
      (all, shadowMode, quotaMode, requests) => {
        const decider = new Decider(policyText(all), {
          answers: { shadowMode, quotaMode, limitHeaders, dynamicMetadata: true },
        });
        const model = new ReferenceModel(all, { shadowMode, quotaMode });
        for (const { descriptors, hitsAddend, waitMicros } of requests) {
          decider.clock.advance(waitMicros);
          decider.observer.told.length = 0;
          const epochSeconds = Math.floor(decider.clock.wallMicros() / 1e6);
          const expected = model.answer(descriptors, hitsAddend, epochSeconds);
          const response = decider.answer(descriptors, hitsAddend);
          const metadata = Object.keys((response.dynamicMetadata?.['metadata'] as object | undefined) ?? {});
          expect({
            overallCode: response.overallCode,
            // Without the bytes that the encoder keeps with a limit.
            statuses: response.statuses.map(({ currentLimit, ...status }) => ({
              ...status,
              currentLimit: currentLimit && { ...currentLimit, encoded: undefined },
            })),
            headers: response.responseHeadersToAdd.map(({ value }) => String(value)),
            passed: metadata.sort(),
            globalShadow: decider.observer.told.includes('global shadow'),
          }).toEqual({ ...expected, passed: [...new Set(expected.passed.map((i) => `m${i}`))].sort() });
        }
      },
    ),
    runs(200),
  );
});
