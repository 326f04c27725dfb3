/* Customers whose row of `plans` blocks them, or exempts them, at every kind of limit. */
import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

const WINDOW = 'unit: day, requests_per_unit: { plan: n, default: 5 }';
const BUCKET = 'token_bucket: { max_tokens: { plan: n, default: 5 }, fill_interval: 1h }';
const FIXED = 'unit: hour, requests_per_unit: 100';

/** The limits of a descriptor, by kind. */
const KINDS: readonly (readonly [string, string])[] = [
  ['a window', `rate_limit: { ${WINDOW} }`],
  ['a window with debt', `rate_limit: { ${WINDOW}, allow_debt: true }`],
  ['a token bucket', `rate_limit: { ${BUCKET} }`],
  ['the first of several limits', `rate_limits: [{ ${BUCKET} }, { ${FIXED} }]`],
  ['the last of several limits', `rate_limits: [{ ${FIXED} }, { ${BUCKET} }]`],
  ['the first limit of a chain', `rate_limits: [{ name: a, ${BUCKET}, then: b }, { name: b, ${FIXED} }]`],
  ['the last limit of a chain', `rate_limits: [{ name: a, ${FIXED}, then: b }, { name: b, ${WINDOW} }]`],
  ['concurrency', 'rate_limit: { concurrency: { max: { plan: n, default: 5 }, expires_after: 1h } }'],
  ['a reservation', `rate_limit: { ${WINDOW}, max_debt: 0, hold: { amount: 1 } }`],
  [
    'a reservation with pair: oldest',
    `rate_limit: { ${WINDOW}, max_debt: 0, hold: { amount: 1, pair: oldest } }`,
  ],
  ['a soft limit', `rate_limit: { ${BUCKET}, on_over: { allow: true } }`],
  ['a quota', `quota_mode: true\n    rate_limit: { ${BUCKET} }`],
];

function decider(limits: string, answers = {}): Decider {
  return new Decider(
    `domain: d
plans: { by: tenant, define: { evil: { blocked: true }, staff: { unlimited: true } } }
descriptors:
  - key: tenant
    ${limits}
  - { key: path, quota_mode: true, rate_limit: { ${FIXED} } }
`,
    { answers },
  );
}

const call = (tenant: string, hitsAddend: number) => descriptor([`tenant=${tenant}`], { hitsAddend });

describe.each(KINDS)('%s', (_, limits) => {
  test.each([0, 1, 1000])('denies a blocked customer for %i hits, and no other one', (hits) => {
    const service = decider(limits);
    const codeOf = (tenant: string, added: number) => service.answer([call(tenant, added)]).overallCode;
    expect(codeOf('evil', hits)).toBe(CODE.OVER_LIMIT);
    expect(codeOf('other', 0)).toBe(CODE.OK);
  });

  test('denies a blocked customer beside a quota that is not used up', () => {
    const path = descriptor(['path=/']);
    for (const quotaMode of [false, true]) {
      const service = decider(limits, { quotaMode });
      for (const hits of [0, 1]) {
        expect(service.answer([call('evil', hits), path]).overallCode).toBe(CODE.OVER_LIMIT);
        expect(service.answer([path, call('evil', hits)]).overallCode).toBe(CODE.OVER_LIMIT);
      }
    }
  });

  test('does not apply to an unlimited customer', () => {
    const service = decider(limits);
    expect(service.answer([call('staff', 99)]).overallCode).toBe(CODE.OK);
  });
});
