import { describe, expect, test } from '@jest/globals';
import { dumpTree } from '../../../../src/config/show/dump-tree.js';
import { type PolicyItem, policyItems } from '../../../../src/config/threads/policy-transfer.js';
import type { WindowRate } from '../../../../src/limiter/fixed-window.js';
import type { CompiledPolicy, PolicySet } from '../../../../src/policy/compiled-policy.js';
import { policyOf, setOf } from '../../../support/policy/policies.js';
import { transferredPolicies } from '../../../support/policy/transferred-policies.js';

function across(policySet: PolicySet): PolicySet {
  return transferredPolicies(policyItems(policySet), policySet.version);
}

describe('policies that are transferred to another process', () => {
  test('have the same windows, calendars and debts', () => {
    const limit = 'unit: day, requests_per_unit: 250';
    const before = policyOf(`
domain: d
algorithm: token_bucket
descriptors:
  - { key: a, rate_limit: { ${limit}, calendar: Europe/Berlin } }
  - { key: b, rate_limit: { ${limit}, calendar: Europe/Berlin } }
  - { key: c, rate_limit: { ${limit}, calendar: America/New_York, allow_debt: true, max_debt: 7 } }
  - { key: d, rate_limit: { ${limit}, algorithm: fixed_window, unit_multiplier: 5 } }
  - { key: e, rate_limit: { ${limit}, unit_multiplier: 5, burst: 3, allow_debt: true } }
  - { key: f, rate_limit: { ${limit}, unit_multiplier: 5, burst: 3 } }
`);
    const day = 1_711_843_200_000_000;
    // A cached window must not prevent the policy from being sent.
    for (const { rate } of before.rules) if (rate?.kind === 'window') rate.startOf(day);
    const set = setOf(before);
    const sent = across(set);
    const after = sent.domains.get('d') as CompiledPolicy;
    expect(after.overrideAlgorithm).toBe('token_bucket');
    expect(dumpTree(sent, 0)).toBe(dumpTree(set, 0));
    const [rate] = after.rules.map((rule) => rule.rate as WindowRate);
    // 31 March 2024 has 23 hours.
    expect((rate as WindowRate).endOf((rate as WindowRate).startOf(day))).toBe(1_711_922_400_000_000);
  });

  test('with a large table and many rules are complete', () => {
    const digest = (n: number): string => n.toString(16).padStart(64, '0');
    const keys = Array.from({ length: 1000 }, (_, n) => `${digest(n)}: tenant${n}`).join(', ');
    const nodes = Array.from(
      { length: 1000 },
      (_, n) => `{ key: k, value: v${n}, rate_limit: { unlimited: true } }`,
    );
    const before = policyOf(
      `domain: d\nderive: [{ entry: t, from: [a], sha256: { ${keys} } }]\ndescriptors: [${nodes.join(', ')}]`,
    );
    const after = across({ domains: new Map([['d', before]]), version: '' }).domains.get('d');
    expect(after?.rules).toEqual(before.rules);
    const own = { root: expect.anything(), bucketNames: expect.anything(), keys: new Set(['k']) };
    expect(after).toEqual({ ...before, ...own });
  });

  test('are not sent if the receiver has them, and stay the same objects', () => {
    const [a, b] = ['a', 'b'].map((domain) => policyOf(`domain: ${domain}\n`)) as [
      CompiledPolicy,
      CompiledPolicy,
    ];
    const kept: PolicyItem = { kind: 'kept', domain: 'a', secretKeys: new Set() };
    const items = [kept, ...policyItems(setOf(b))];
    const after = transferredPolicies(items, '2', setOf(a));
    expect([...after.domains.keys()]).toEqual(['a', 'b']);
    expect(after.domains.get('a')).toBe(a);
    expect(() => transferredPolicies(items)).toThrow(
      'the previous version of the domain a cannot be kept, because it does not exist',
    );
  });

  test('that the receiver has are built again if the secret keys have changed', () => {
    const before = policyOf(
      'domain: a\ndescriptors: [{ key: k, value: v, rate_limit: { unlimited: true } }]\n',
    );
    const kept: PolicyItem = { kind: 'kept', domain: 'a', secretKeys: new Set(['k']) };
    const after = transferredPolicies([kept], '2', setOf(before)).domains.get('a');
    expect(before.rules.map(({ path }) => path)).toEqual(['k=v']);
    expect(after?.rules.map(({ path }) => path)).toEqual([
      expect.stringMatching(/^k=\[redacted sha256:.{8}\]$/),
    ]);
  });
});
