import { describe, expect, test } from '@jest/globals';
import { dumpTree } from '../../../../src/config/show/dump-tree.js';
import { policyItems } from '../../../../src/config/threads/policy-transfer.js';
import type { WindowRate } from '../../../../src/limiter/fixed-window.js';
import type { CompiledPolicy } from '../../../../src/policy/compiled-policy.js';
import type { PolicySet } from '../../../../src/policy/policy-set.js';
import { entries, policyOf, setOf } from '../../../support/policy/policies.js';
import { transferredPolicies } from '../../../support/policy/transferred-policies.js';

/** Transfers policies, except for known ones, which the receiver has in `inEffect`. */
function across(
  policySet: PolicySet,
  inEffect?: PolicySet,
  isKnown?: (policy: CompiledPolicy) => boolean,
): PolicySet {
  return transferredPolicies(policyItems(policySet, isKnown), policySet.version, inEffect);
}

describe('policies that are transferred to another process', () => {
  test('match alike: tables, path patterns, wildcards, shared levels, schedules', () => {
    const digest = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';
    const before = policyOf(`
domain: d
response_headers: [x-ratelimit]
denied_response: { body: no more, content_type: text/html }
decision_metadata: true
on_store_failure: { local: 0.25 }
phase: { grace_period: 2026-01-01T00:00:00Z }
derive:
  - { entry: tenant, from: [api_key], sha256: { ${digest}: acme } }
  - entry: group
    from: [method, path]
    rules: [{ method: GET, path: "/a/{b,c}/**", value: reads }, { value: other }]
descriptors:
  - key: tenant
    descriptors:
      - { key: group, value: reads, rate_limit: { name: r, unit: day, requests_per_unit: 9, response_headers: [ratelimit], denied_response: problem+json } }
      - { key: group, value: "o*", share_threshold: true, rate_limit: { replaces: [{ name: r }], unit: second, requests_per_unit: 5 } }
  - { key: plain, value: x, phase: monitoring, rate_limit: { token_bucket: { max_tokens: 3, tokens_per_fill: 7, fill_interval: 1s } } }
`);
    const after = across(setOf(before)).domains.get('d') as CompiledPolicy;
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
    expect(after.match(entries('plain=x')).rules[0]).toBe(after.rules[2]);
    expect(after.responseHeaders).toEqual(before.responseHeaders);
    expect(after.deniedResponse).toEqual({ preset: 'none', body: 'no more', contentType: 'text/html' });
    expect(after.decisionMetadata).toBe(true);
    expect(after.rules[0]?.responseHeaders).toMatchObject({ rateLimit: true, xRateLimit: false });
    expect(after.rules[0]?.deniedResponse?.preset).toBe('problem+json');
    expect([...after.secretKeys]).toEqual(['api_key']);
  });

  test('have the same windows, calendars and debts, and share equal objects', () => {
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
    expect(new Set(after.rules.map(({ rate }) => rate)).size).toBe(5);
    const [rate] = after.rules.map((rule) => rule.rate as WindowRate);
    // 31 March 2024 has 23 hours.
    expect((rate as WindowRate).endOf((rate as WindowRate).startOf(day))).toBe(1_711_922_400_000_000);
  });

  test('are in file order, for any order of keys', () => {
    const rule = 'rate_limit: { unit: second, requests_per_unit: 1 }';
    const before = policyOf(`
domain: d
descriptors:
  - { key: a, value: x, ${rule} }
  - { key: b, ${rule}, descriptors: [{ key: c, value: "1*", ${rule} }, { key: c, value: "*1", ${rule} }] }
  - { key: a, value: "y*", ${rule} }
`);
    const set = setOf(before);
    const after = across(set);
    expect(dumpTree(after, 0)).toBe(dumpTree(set, 0));
    expect(after.domains.get('d')?.rules).toEqual(before.rules);
    expect(after.version).toBe('v');
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
    const inEffect = { domains: new Map([['a', a]]), version: '1' };
    const next = {
      domains: new Map([
        ['a', policyOf('domain: a\n')],
        ['b', b],
      ]),
      version: '2',
    };
    const after = across(next, inEffect, ({ domain }) => domain === 'a');
    expect([...after.domains.keys()]).toEqual(['a', 'b']);
    expect(after.domains.get('a')).toBe(a);
    expect(() => across(next, undefined, () => true)).toThrow(
      'the previous version of the domain a cannot be kept, because it does not exist',
    );
  });
});
