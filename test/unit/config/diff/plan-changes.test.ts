/** Changes of the plan of customers without a row, which may be nearly all customers. */
import { expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { loadPolicies } from '../../../../src/config/files/load-policies.js';
import { policyOf } from '../../../support/policy/policies.js';
import { TempDir } from '../../../support/process/temp-dir.js';

const LIMIT = 'rate_limit: { unit: minute, requests_per_unit: { plan: calls } }';

const setOf = (free: string, limit = LIMIT) => {
  const plans = `by: tenant, from: rows.csv, default: free, define: { free: ${free}, gold: { calls: 900 } }`;
  const text = `domain: d\nplans: { ${plans} }\ndescriptors:\n` + `  - { key: tenant, ${limit} }\n`;
  const policy = policyOf(text, { 'rows.csv': 'tenant,plan\nacme,gold\n' });
  return { domains: new Map([['d', policy]]), version: '' };
};

const SOFT = LIMIT.replace(' } }', ' }, on_over: { allow: true } }');
const CHAIN =
  'rate_limits: [{ name: a, then: b, unit: minute, requests_per_unit: { plan: calls } }, ' +
  '{ name: b, unit: minute, requests_per_unit: 5 }]';
const MONITORED = CHAIN.replace(': 5 }', ': 5, phase: monitoring }');
const [LESS, MORE, OTHER] = ['can now be denied more', 'can be allowed more', 'have other values'];

test.each([
  ['a soft limit', SOFT, '{ calls: 600 }', '{ calls: 5 }', OTHER],
  ['a soft limit', SOFT, '{ calls: 600 }', '{ blocked: true }', LESS],
  ['a soft limit', SOFT, '{ blocked: true }', '{ calls: 600 }', MORE],
  ['a soft limit', SOFT, '{ calls: 600 }', '{ unlimited: true }', OTHER],
  ['a limit in shadow mode', `${LIMIT}, shadow_mode: true`, '{ calls: 600 }', '{ blocked: true }', OTHER],
  ['a limit', LIMIT, '{ calls: 600 }', '{ calls: 500 }', LESS],
  ['a limit', LIMIT, '{ calls: 600 }', '{ blocked: true }', LESS],
  ['a limit', LIMIT, '{ unlimited: true }', '{ blocked: true }', LESS],
  ['a limit', LIMIT, '{ calls: 600 }', '{ unlimited: true }', MORE],
  ['a limit', LIMIT, '{ calls: 600 }', '{ calls: 600, phase: monitoring }', MORE],
  ['a limit', LIMIT, '{ calls: 600 }', '{ calls: 5, phase: monitoring }', MORE],
  ['a limit', LIMIT, '{ calls: 5, phase: monitoring }', '{ calls: 600 }', LESS],
  ['a chain', CHAIN, '{ calls: 600 }', '{ calls: 5 }', LESS],
  ['a chain', CHAIN, '{ calls: 600 }', '{ calls: 700 }', LESS],
  ['a chain', CHAIN, '{ calls: 600 }', '{ unlimited: true }', LESS],
  ['a chain', CHAIN, '{ unlimited: true }', '{ blocked: true }', LESS],
  ['a monitored chain', MONITORED, '{ calls: 600 }', '{ calls: 5 }', LESS],
  ['a monitored chain', MONITORED, '{ calls: 600 }', '{ calls: 700, phase: active }', LESS],
  ['a monitored chain', MONITORED, '{ calls: 5, phase: active }', '{ calls: 5 }', LESS],
])('the row of %s (%s) changes from %s to %s', (_name, limit, before, after, effect) => {
  const changes = diffPolicies(setOf(before, limit), setOf(after, limit), Date.UTC(2026, 0, 1) * 1000);
  const rows = changes.filter(({ text }) => text.startsWith('rows'));
  const text = `rows of plans: customers without a row ${effect}`;
  expect(rows).toMatchObject([{ text, tightens: effect === LESS }]);
});

test.each([
  ['a plan that a customer may have', (text: string) => text.replace('c: 50', 'c: 1')],
  ['a plan that is no longer unlimited', (text: string) => text.replace('unlimited: true', 'c: 100')],
  ['the address', (text: string) => text.replace('/customers', '/others')],
  ['the value of rows without a value', (text: string) => text.replace('default: 3', 'default: 2')],
])('with rows in Redis, which are unknown, tightens: %s', (_name, change) => {
  const before =
    'domain: d\nplans: { by: tenant, from: "redis://h/customers", default: free, ' +
    'define: { free: { c: 5 }, gold: { c: 50 }, vip: { unlimited: true } } }\n' +
    'descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: c, default: 3 } } }]\n';
  const folder = new TempDir();
  const load = (text: string) => loadPolicies([folder.write('policy.yaml', text)]).policySet;
  const [was, is] = [load(before), load(change(before))];
  folder.remove();
  expect([was.domains.size, is.domains.size]).toEqual([1, 1]);
  const nowMicros = Date.UTC(2026, 0, 1) * 1000;
  expect(diffPolicies(was, is, nowMicros)).toMatchObject([
    {
      text: expect.stringMatching(/^(plans: .* becomes |plan differs$)/),
      tightens: true,
    },
  ]);
  expect(diffPolicies(was, was, nowMicros)).toEqual([]);
});

test.each([
  [20, 15, '', true],
  [20, 16, '', false],
  [19, 1, '', false],
  [4, 3, 'max_drop_from: 4, ', true],
  [20, 15, 'max_drop: 25, ', false],
])('of %i rows, %i stay: a running weir refuses the table: %s%s', (before, after, setting, isRefused) => {
  const policyWith = (length: number) => {
    const rows = Array.from({ length }, (_, i) => `t${i},5\n`).join('');
    const text =
      `domain: d\nplans: { by: tenant, ${setting}from: rows.csv }\ndescriptors:\n` +
      '  - { key: tenant, rate_limit: { unit: minute, requests_per_unit: { plan: calls, default: 5 } } }\n';
    const policy = policyOf(text, { 'rows.csv': `tenant,calls\n${rows}` });
    return { domains: new Map([['d', policy]]), version: '' };
  };
  const changes = diffPolicies(policyWith(before), policyWith(after), Date.UTC(2026, 0, 1) * 1000);
  const text =
    `rows of plans: ${before - after} of ${before} rows are gone, more than 20 %, so a running weir keeps its rows ` +
    'and refuses the table; raise "plans.max_drop" in the same change if the rows are removed on purpose';
  expect(changes.filter((change) => change.text === text)).toHaveLength(isRefused ? 1 : 0);
});
