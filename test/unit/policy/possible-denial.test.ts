import { expect, test } from '@jest/globals';
import { PossibleDenial } from '../../../src/policy/policy.js';
import { fixedPhase, type Rule } from '../../../src/policy/rule.js';
import { policyOf } from '../../support/policy/policies.js';

const RATE = 'rate_limit: { unit: hour, requests_per_unit: 1 }';

function rulesOf(...nodes: readonly string[]): readonly Rule[] {
  return policyOf(
    `domain: d\ndescriptors:\n${nodes.map((node, i) => `  - { key: k${i}, ${node} }\n`).join('')}`,
  ).rules;
}

function mayDeny(
  rules: readonly Rule[],
  drawn = 0,
  wallMicros = 0,
  plans?: { readonly hasBlocked: boolean; readonly hasActive: boolean },
  hasCustomer = true,
): boolean {
  const node = { rules, phase: fixedPhase('active'), hasCustomer };
  const denial = new PossibleDenial(plans);
  denial.add(node);
  return denial.mayDeny(wallMicros, () => drawn);
}

test.each([
  [RATE, true],
  [`${RATE}, phase: monitoring`, false],
  [`${RATE}, phase: grace_period`, false],
  [`${RATE}, shadow_mode: true`, false],
  [`${RATE}, enforce_percent: 0`, false],
  [`${RATE}, quota_mode: true`, true],
  ['rate_limit: { unlimited: true }', false],
])('%s may deny: %s', (node, expected) => {
  expect(mayDeny(rulesOf(node))).toBe(expected);
});

test('a single enforced rule is enough, at any position', () => {
  expect(mayDeny(rulesOf(`${RATE}, shadow_mode: true`, `${RATE}, phase: monitoring`, RATE))).toBe(true);
  expect(mayDeny([])).toBe(false);
});

test('rows of plans may block a customer at a soft limit, and activate a chain', () => {
  const blocked = { hasBlocked: true, hasActive: false };
  const planned = (node: string): readonly Rule[] =>
    policyOf(`domain: d
plans: { by: tenant, define: { evil: { blocked: true }, new: { phase: active } } }
descriptors:
  - { key: tenant, ${node} }
  - { key: other, ${RATE.replace(' }', ', on_over: { allow: true } }')} }
`).rules;
  const soft = planned(
    'rate_limit: { unit: hour, requests_per_unit: { plan: n, default: 1 }, on_over: { allow: true } }',
  );
  expect(mayDeny(soft)).toBe(false);
  expect(mayDeny(soft, 0, 0, blocked)).toBe(true);
  // The other limit takes no value from the plan. Its path may have the customer, or not.
  expect(mayDeny(soft.slice(1), 0, 0, blocked)).toBe(true);
  expect(mayDeny(soft.slice(1), 0, 0, blocked, false)).toBe(false);
  const chain = planned(
    'rate_limits: [{ name: a, unit: hour, requests_per_unit: { plan: n, default: 1 }, then: b }, ' +
      '{ name: b, unit: hour, requests_per_unit: 1, phase: monitoring }]',
  );
  expect(mayDeny(chain)).toBe(false);
  expect(mayDeny(chain, 0, 0, { hasBlocked: false, hasActive: true })).toBe(true);
});

test.each([
  ['free: { n: 5 }', false],
  ['free: { n: 5, phase: monitoring }', false],
  ['free: { n: 5 }, evil: { blocked: true }', false],
  ['free: { n: 5 }, paying: { n: 9, phase: active }', true],
])('a domain in the phase monitoring with the plans { %s } may deny: %s', (plans, expected) => {
  const { possibleDenial } = policyOf(`domain: d
phase: monitoring
plans: { by: tenant, default: free, define: { ${plans} } }
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: { plan: n } } }
`);
  expect(possibleDenial.mayDeny(0, () => 0)).toBe(expected);
  expect(possibleDenial.overrideMayDeny(0)).toBe(false);
});

test('schedules and partial enforcement are evaluated at each time', () => {
  const at = (text: string) => Date.parse(text) * 1000;
  const rules = rulesOf(
    `${RATE}, enforce_percent: 20, phase: { active: 2026-02-01T00:00:00Z }`,
    `${RATE}, enforce_percent: 60, phase: { active: 2026-03-01T00:00:00Z }`,
    `${RATE}, enforce_percent: 10, phase: { active: 2026-04-01T00:00:00Z }`,
  );
  const drawn = [5, 15, 30, 70];
  const at1 = (text: string) => drawn.map((one) => mayDeny(rules, one, at(text)));
  expect(at1('2026-01-15T00:00:00Z')).toEqual([false, false, false, false]);
  expect(at1('2026-02-15T00:00:00Z')).toEqual([true, true, false, false]);
  expect(at1('2026-03-15T00:00:00Z')).toEqual([true, true, true, false]);
  expect(at1('2026-05-15T00:00:00Z')).toEqual([true, true, true, false]);
});

test('an override may deny at any active node, whatever its rules deny, and without rules', () => {
  const mayDeny = (...nodes: readonly string[]) =>
    policyOf(
      `domain: d\nphase: monitoring\ndescriptors:\n${nodes.map((node, i) => `  - { key: k${i}, ${node} }\n`).join('')}`,
    ).possibleDenial.overrideMayDeny(0);
  expect(mayDeny(`${RATE}, phase: active`)).toBe(true);
  expect(mayDeny(`${RATE}, phase: active, shadow_mode: true`)).toBe(true);
  expect(mayDeny(RATE, 'rate_limit: { unlimited: true }, phase: active')).toBe(true);
  expect(mayDeny(RATE, `${RATE}, phase: grace_period`)).toBe(false);
  expect(mayDeny(RATE, 'phase: active')).toBe(true);
  expect(mayDeny(RATE, 'phase: { active: 1970-01-01T00:00:01Z }')).toBe(false);
  // An override has the phase of the node, not of one of its rules.
  expect(mayDeny('rate_limits: [{ unit: hour, requests_per_unit: 1, phase: active }]')).toBe(false);
  expect(mayDeny('phase: grace_period')).toBe(false);
});

test('the rules of the whole domain count, at every depth', () => {
  const denial = (limit: string, phase = 'monitoring') =>
    policyOf(`domain: d
phase: ${phase}
descriptors:
  - { key: k, value: exact, rate_limit: { unlimited: true } }
  - key: k
    descriptors:
      - key: l
        descriptors:
          - { key: m, ${limit} }
`).possibleDenial;
  const mayDeny = (limit: string) => denial(limit).mayDeny(0, () => 0);
  expect([mayDeny(`${RATE}, phase: active`), mayDeny(RATE)]).toEqual([true, false]);
  expect(denial(RATE, 'active').overrideMayDeny(0)).toBe(true);
});
