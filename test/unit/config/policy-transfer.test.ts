import { describe, expect, test } from '@jest/globals';
import { assetPath } from '../../../src/assets.js';
import { dumpTree } from '../../../src/config/dump-tree.js';
import { loadPolicies } from '../../../src/config/load-policies.js';
import type { DomainPolicy, PolicySet } from '../../../src/config/policy.js';
import { fromTransfer, toTransfer } from '../../../src/config/policy-transfer.js';
import { entries, policyOf } from '../../support/policies.js';

const across = (policySet: PolicySet): PolicySet => fromTransfer(structuredClone(toTransfer(policySet)));

describe('policies handed to another process', () => {
  test('are the same in every line that /rlconfig?format=tree shows', () => {
    const { policySet, errors } = loadPolicies([assetPath('deploy/policies')]);
    expect(errors).toEqual([]);
    expect(policySet.domains.size).toBeGreaterThan(0);
    expect(dumpTree(across(policySet), 0)).toBe(dumpTree(policySet, 0));
  });

  test('match alike: tables, path patterns, wildcards, shared levels, schedules', () => {
    const digest = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';
    const before = policyOf(`
domain: d
response_headers: [x-ratelimit]
on_store_failure: local
phase: { grace_period: 2026-01-01T00:00:00Z }
derive:
  - { entry: tenant, from: [api_key], sha256: { ${digest}: acme } }
  - entry: group
    from: [method, path]
    rules: [{ method: GET, path: "/a/{b,c}/**", value: reads }, { value: other }]
descriptors:
  - key: tenant
    descriptors:
      - { key: group, value: reads, rate_limit: { name: r, unlimited: true } }
      - { key: group, value: "o*", share_threshold: true, rate_limit: { replaces: [{ name: r }], unit: second, requests_per_unit: 5 } }
  - { key: plain, value: x, phase: monitoring, rate_limit: { token_bucket: { max_tokens: 3, tokens_per_fill: 7, fill_interval: 1s } } }
`);
    const after = across({ domains: new Map([['d', before]]), version: 'v' }).domains.get(
      'd',
    ) as DomainPolicy;
    const asked = [
      ['api_key=secret', 'method=GET', 'path=/a/b/1'],
      ['api_key=other', 'method=POST', 'path=/a/b/1'],
      ['plain=x'],
      ['plain=y'],
      [],
    ];
    for (const texts of asked)
      expect(after.match(entries(...texts))).toEqual(before.match(entries(...texts)));
    expect(after.rules).toEqual(before.rules);
    expect(after.match(entries('plain=x')).rule).toBe(after.rules[2]);
    expect(after.responseHeaders).toEqual(before.responseHeaders);
    expect([...after.secretKeys]).toEqual(['api_key']);
  });
});
