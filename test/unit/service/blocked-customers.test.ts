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

/** The limits of a descriptor without values from the plan, by kind. */
const FIXED_KINDS: readonly (readonly [string, string])[] = KINDS.map(([name, limits]) => [
  name,
  limits.replaceAll(/\{ plan: n, default: 5 \}/g, '5'),
]);

/** Limits without values from the plan, below a limit that has some, and beside it. */
function fixedDecider(limits: string, answers = {}): Decider {
  return new Decider(
    `domain: d
plans: { by: tenant, define: { evil: { blocked: true }, bad: { blocked: true }, team-evil: { blocked: true }, staff: { unlimited: true } } }
descriptors:
  - key: tenant
    rate_limit: { ${WINDOW} }
    descriptors:
      - key: path
        ${limits.replaceAll('\n', '\n    ')}
  - key: tenant
    value: team-*
    share_threshold: true
    ${limits}
  - key: tenant
    value: evil
    ${limits}
  - key: plain
    descriptors: [{ key: tenant, rate_limit: { unlimited: true } }]
  - { key: path, quota_mode: true, rate_limit: { ${FIXED} } }
`,
    { answers },
  );
}

describe.each(FIXED_KINDS)('%s without values from the plan', (_, limits) => {
  const below = (tenant: string, hitsAddend: number) =>
    descriptor([`tenant=${tenant}`, 'path=/'], { hitsAddend });

  test.each([0, 1, 1000])('denies a blocked customer for %i hits, and no other one', (hits) => {
    const service = fixedDecider(limits);
    const blocked = [below('bad', hits), call('evil', hits), call('team-evil', hits)];
    for (const one of blocked) expect(service.answer([one]).overallCode).toBe(CODE.OVER_LIMIT);
    for (const other of [below('x', 0), call('team-x', 0)]) {
      expect(service.answer([other]).overallCode).toBe(CODE.OK);
      expect(service.answer([call('team-evil', hits)]).overallCode).toBe(CODE.OVER_LIMIT);
    }
  });

  test('denies a blocked customer beside a quota that is not used up', () => {
    const service = fixedDecider(limits, { quotaMode: true });
    const path = descriptor(['path=/']);
    expect(service.answer([path, call('evil', 1)]).overallCode).toBe(CODE.OVER_LIMIT);
    expect(service.answer([path]).overallCode).toBe(CODE.OK);
  });

  test('applies to an unlimited customer as to others', () => {
    const [service, same] = [fixedDecider(limits), fixedDecider(limits)];
    const codes = (one: Decider, tenant: string) =>
      [0, 3, 3, 0, 1000].map((hits) => one.answer([below(tenant, hits)]).overallCode);
    expect(codes(service, 'staff')).toEqual(codes(same, 'other'));
  });
});

describe('a block', () => {
  const codeWith = (settings: string, ...texts: readonly string[]) =>
    new Decider(
      `domain: d
plans: { by: tenant, define: { evil: { blocked: true }, lax: { blocked: true, phase: monitoring } } }
descriptors:
  - key: tenant
    rate_limit: { ${WINDOW} }
    descriptors: [{ key: path, rate_limit: { ${FIXED} }, ${settings} }]
  - key: free
    descriptors: [{ key: tenant, rate_limit: { unlimited: true } }, { key: other }]
`,
    ).answer([descriptor(texts)]).overallCode;

  test.each([
    ['phase: active', CODE.OVER_LIMIT],
    ['phase: monitoring', CODE.OK],
    ['phase: grace_period', CODE.OK],
    ['shadow_mode: true', CODE.OK],
    ['enforce_percent: 0', CODE.OK],
  ])('with %s', (settings, code) => {
    expect(codeWith(settings, 'tenant=evil', 'path=/')).toBe(code);
  });

  test('has the phase of the row only at limits with values from the plan', () => {
    expect(codeWith('phase: active', 'tenant=lax', 'path=/')).toBe(CODE.OVER_LIMIT);
    expect(codeWith('phase: active', 'tenant=lax')).toBe(CODE.OK);
  });

  test('does not apply where there is no limit, or no customer', () => {
    for (const texts of [['free=x', 'tenant=evil'], ['free=x', 'other=evil'], ['other=evil']])
      expect(codeWith('phase: active', ...texts)).toBe(CODE.OK);
  });

  test('applies even if a rule that does not know the customer replaces the limit', () => {
    const service = new Decider(`domain: d
plans: { by: tenant, define: { evil: { blocked: true } } }
descriptors:
  - { key: tenant, rate_limits: [{ name: a, ${WINDOW}, then: b }, { name: b, ${FIXED} }] }
  - { key: ip, rate_limit: { name: c, ${FIXED}, replaces: [{ name: a }] } }
  - { key: free, rate_limit: { name: d, unlimited: true, replaces: [{ name: a }, { name: b }] } }
`);
    for (const other of ['ip=1', 'free=1']) {
      const codeOf = (tenant: string) =>
        service.answer([descriptor([other]), descriptor([`tenant=${tenant}`])]).overallCode;
      expect([codeOf('evil'), codeOf('acme')]).toEqual([CODE.OVER_LIMIT, CODE.OK]);
    }
  });

  test.each([
    'unit: year, requests_per_unit: 20, max_debt: 0',
    'token_bucket: { max_tokens: 20, fill_interval: 1h }',
  ])('keeps the bucket that it shares with other customers of one request: %s', (limit) => {
    const service = new Decider(`domain: d
plans: { by: tenant, define: { team-evil: { blocked: true } } }
descriptors:
  - { key: tenant, value: team-*, share_threshold: true, shadow_mode: true, rate_limit: { ${limit}, hold: { amount: 5, pair: oldest } } }
  - { key: other, descriptors: [{ key: tenant, rate_limit: { ${WINDOW} } }] }
`);
    const [evil, good] = [call('team-evil', 0), call('team-good', 0)];
    const remainingOf = (...calls: (typeof good)[]) =>
      service.answer(calls).statuses.map(({ limitRemaining }) => limitRemaining);
    expect(remainingOf(good)).toEqual([15]);
    expect(remainingOf(evil, good)).toEqual([0, 10]);
    expect(remainingOf(good, evil)).toEqual([5, 0]);
    expect(remainingOf(good)).toEqual([0]);
  });

  test('keeps the bucket of a reservation, and lets its requests end', () => {
    for (const pair of ['token', 'oldest']) {
      const policy = (row: string, plan = '{ plan: n, default: 40 }') => `domain: d
plans: { by: tenant, define: { acme: { ${row} } } }
descriptors:
  - { key: tenant, rate_limit: { algorithm: fixed_window, unit: year, requests_per_unit: ${plan}, max_debt: 0, hold: { amount: 5, pair: ${pair} } } }
  - { key: other, descriptors: [{ key: tenant, rate_limit: { ${WINDOW} } }] }
`;
      for (const limit of ['40', '{ plan: n, default: 40 }']) {
        const decider = new Decider(policy('n: 40', limit));
        const start = pair === 'token' ? 1 : 0;
        const held = decider.answer([call('acme', start)]).dynamicMetadata?.['hold'];
        decider.reload(policy('blocked: true', limit));
        expect(decider.answer([call('acme', start)]).overallCode).toBe(CODE.OVER_LIMIT);
        decider.answer([
          pair === 'token' ? descriptor([`hold=${String(held)}`], { hitsAddend: 2 }) : call('acme', 2),
        ]);
        expect(decider.observer.told).toContain('d tenant settled 5 used 2');
        decider.reload(policy('n: 40', limit));
        const next = decider.answer([call('acme', start)]).statuses[0]?.limitRemaining;
        expect([pair, limit, next]).toEqual([pair, limit, 40 - 2 - 5]);
      }
    }
  });
});
