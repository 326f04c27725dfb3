import { describe, expect, test } from '@jest/globals';
import { dump, dumpJson } from '../../../../src/config/show/dump.js';
import { dumpTree } from '../../../../src/config/show/dump-tree.js';
import type { DomainStatus } from '../../../../src/policy/policy.js';
import { setOf } from '../../../support/policy/policies.js';

test('a dump without domains', () => {
  expect(dump(setOf())).toBe('');
  expect(dumpTree({ domains: new Map(), version: 'v' }, 0)).toBe('policy version v\nno domains\n');
});

describe('rules with plans, "then" and "on_over"', () => {
  const policiesOf = (plan: string) =>
    setOf(`
domain: shop
plans:
  by: tenant
  default: ${plan}
  define:
    internal: { unlimited: true }
    suspended: { blocked: true }
    trial: { burst: 1, phase: monitoring }
    gold: { burst: 3 }
descriptors:
  - key: tenant
    rate_limits:
      - { name: plan, token_bucket: { max_tokens: { plan: burst }, fill_interval: 7s }, then: credits }
      - { name: credits, unit: day, requests_per_unit: 50 }
      - { name: soft, unit: hour, requests_per_unit: 9, on_over: { allow: true } }
`);

  test.each([
    ['gold', 3, ''],
    ['trial', 1, 'phase monitoring'],
    ['internal', 1, 'unlimited'],
    ['suspended', 1, 'blocked'],
  ])('the default plan is %s', (plan, burst, standard) => {
    const set = policiesOf(plan);
    const mark = standard === '' ? '' : `${standard} without a row`;
    // The soft limit takes no value from the plan, so that only a block applies to it.
    const softMark = standard === 'blocked' ? mark : '';
    const marks = (...all: string[]): string =>
      all.some(Boolean) ? ` (${all.filter(Boolean).join(', ')})` : '';
    const end = 'shadow_mode: false, quota_mode: false\n';
    expect(dump(set)).toBe(
      `shop.tenant.plan${marks(mark, 'then credits')}: unit=UNKNOWN requests_per_unit=${burst}, ${end}` +
        `shop.tenant.credits${marks(mark)}: unit=DAY requests_per_unit=50, ${end}` +
        `shop.tenant.soft${marks(softMark, 'passes if over')}: unit=HOUR requests_per_unit=9, ${end}`,
    );
    const tree = dumpTree(set, 0);
    expect([...tree.matchAll(/^ {6}- "\w+"; .* store failure error(.*)/gm)].map(([, last]) => last)).toEqual([
      `; then "credits"${mark && `; ${mark}`}`,
      mark && `; ${mark}`,
      `; passes if over${softMark && `; ${softMark}`}`,
    ]);
    const shop: DomainStatus = { domain: 'shop', state: 'ok', files: [] };
    const { rules } = JSON.parse(JSON.stringify(dumpJson(set, [shop], [], 0))).domains[0].policy;
    const isSet = standard === '' ? null : standard;
    expect(rules).toMatchObject([
      // biome-ignore lint/suspicious/noThenProperty: the name of the key in policies
      { name: 'plan', plan_values: { max_tokens: 'burst' }, without_row: isSet, then: 'credits' },
      { name: 'credits', plan_values: null, without_row: isSet },
      { name: 'soft', without_row: softMark === '' ? null : 'blocked', on_over: { allow: true } },
    ]);
    const stored = 'on store failure error';
    const words = (...all: string[]) => [stored, ...all].filter(Boolean);
    expect(rules.map((rule: { options_about: unknown }) => rule.options_about)).toEqual([
      words('then "credits"', mark),
      words('pays after "plan"', mark),
      words('passes if over', softMark),
    ]);
    expect(rules[0]).toMatchObject({
      limit_about: expect.stringContaining('; max_tokens from the plan value burst'),
    });
  });
});

describe('/rlconfig?format=json', () => {
  const policies = setOf(`
domain: shop
phase: { grace_period: 2026-01-01T00:00:00Z }
denied_response: { body: 'no', content_type: text/html }
on_store_failure: { local: 0.25 }
descriptors:
  - { key: a, phase: active, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 5 } }
  - { key: b, rate_limit: { unlimited: true } }
`);
  const domains: readonly DomainStatus[] = [
    { domain: 'gone', state: 'absent', files: ['gone.yaml'] },
    { domain: 'shop', state: 'kept', files: ['shop.yaml'] },
  ];
  const error = { file: 'gone.yaml', line: 1, column: 2, path: 'domain', message: 'is bad' };

  // contract/golden/ has every key.
  test('contains the state and the errors of each domain', () => {
    const dumped = JSON.parse(JSON.stringify(dumpJson(policies, domains, [error], 0)));
    expect(dumped).toMatchObject({ version: 'v', domains, errors: [error] });
    expect(dumped.domains[0].policy).toBeUndefined();
    expect(dumped.domains[1].policy).toMatchObject({
      phase: { now: 'monitoring', grace_period: '2026-01-01T00:00:00.000Z' },
      denied_response: { body: 'no', content_type: 'text/html' },
      on_store_failure: { local: 0.25 },
      rules: [{ phase: { now: 'active' }, stat_name: null }, { phase: { now: 'monitoring' } }],
    });
  });
});
