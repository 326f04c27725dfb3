/** Changes of the plan of customers without a row, which may be nearly all customers. */
import { expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { policyOf } from '../../../support/policy/policies.js';

const setOf = (free: string) => {
  const plans = `by: tenant, from: rows.csv, default: free, define: { free: ${free}, gold: { calls: 900 } }`;
  const text =
    `domain: d\nplans: { ${plans} }\ndescriptors:\n` +
    '  - { key: tenant, rate_limit: { unit: minute, requests_per_unit: { plan: calls } } }\n';
  const policy = policyOf(text, { 'rows.csv': 'tenant,plan\nacme,gold\n' });
  return { domains: new Map([['d', policy]]), version: '' };
};

test.each([
  ['{ calls: 600 }', '{ calls: 500 }', true, 'rows of plans: customers without a row can now be denied more'],
  [
    '{ calls: 600 }',
    '{ blocked: true }',
    true,
    'rows of plans: customers without a row can now be denied more',
  ],
  [
    '{ unlimited: true }',
    '{ blocked: true }',
    true,
    'rows of plans: customers without a row can now be denied more',
  ],
  [
    '{ calls: 600 }',
    '{ unlimited: true }',
    false,
    'rows of plans: customers without a row can be allowed more',
  ],
  [
    '{ calls: 600 }',
    '{ calls: 600, phase: monitoring }',
    false,
    'rows of plans: customers without a row can be allowed more',
  ],
])('the default plan %s becomes %s', (before, after, tightens, text) => {
  const changes = diffPolicies(setOf(before), setOf(after), Date.UTC(2026, 0, 1) * 1000);
  expect(changes.some((change) => change.tightens)).toBe(tightens);
  expect(changes.map((change) => change.text)).toContain(text);
});
