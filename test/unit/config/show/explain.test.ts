import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { explain } from '../../../../src/config/show/explain.js';
import { renderExplanation } from '../../../../src/config/show/explain-text.js';
import { CompiledPolicy, type PolicySet } from '../../../../src/policy/compiled-policy.js';
import { redactEntries } from '../../../../src/policy/redact.js';
import { entries, policyOf } from '../../../support/policy/policies.js';

const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
const NOW = Date.parse('2024-05-10T00:00:00Z') * 1000;
const SECRET = 'my-very-secret-key';

const policy = policyOf(`
domain: open-api
phase: { grace_period: 2024-05-01T00:00:00Z, active: 2024-05-15T00:00:00Z }
response_headers: [x-ratelimit]
on_store_failure: { local: 0.25 }
derive:
  - { entry: tenant, from: [api_key], sha256: { ${hex(SECRET)}: acme } }
  - entry: group
    from: [method, path]
    rules:
      - { method: GET, path: "/open/{v4,v5}/user-chats", value: user-chats }
      - { path: "/open/**", value: other }
descriptors:
  - key: tenant
    descriptors:
      - key: group
        value: user-chats
        rate_limit: { name: chats, token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s } }
      - key: group
        value: "x*"
        shadow_mode: true
        quota_mode: true
        rate_limit: { replaces: [{ name: chats }], unit: minute, requests_per_unit: 5, on_store_failure: deny }
      - key: group
        value: "*"
        share_threshold: true
        phase: active
        rate_limit: { unlimited: true }
  - key: exempt
`);
const policySet: PolicySet = { domains: new Map([['open-api', policy]]), version: '0123456789ab' };

const asked = (...texts: string[]): ReturnType<typeof explain> =>
  explain(policySet, 'open-api', entries(...texts));

test('a chain of limits, as the last limit decides', () => {
  const limit = 'unit: day, requests_per_unit: 1, algorithm: fixed_window';
  const limits = `[{ name: a, then: b, ${limit} }, { name: b, ${limit}, phase: monitoring, on_store_failure: deny }]`;
  const domains = new Map([
    [
      'd',
      policyOf(`domain: d\nalgorithm: token_bucket\ndescriptors: [{ key: k, rate_limits: ${limits} }]\n`),
    ],
  ]);
  const text = renderExplanation(explain({ domains, version: '0' }, 'd', entries('k=v')), NOW);
  expect(text).toContain('takes from all of them (from one limit of a chain) or from none.');
  expect(text).toContain('"a"; window: 1 per day; phase monitoring; on store failure deny; then "b"');
  expect(text).toContain('\noverrides:  a limit in the request is applied as a token bucket, instead of');
});

test('an unknown key, and patterns that did not match', () => {
  const text = renderExplanation(asked('api_key=other-secret', 'group=y'), NOW);
  expect(text).toContain(`the API key is not in the table: tenant=sha256:${hex('other-secret')}`);
  expect(text).toContain('the descriptor has no entry method, path');
  expect(text).toContain('            group=user-chats: the value does not match\n');
  expect(text).toContain('            group=x*: the pattern does not match\n');
  expect(text).toContain('          > group=*: the pattern matches\n');
  expect(text).toContain('rule:       unlimited; phase active; on store failure { local: 0.25 }\n');
  // An unlimited rule has no bucket.
  expect(text).not.toContain('bucket:');
  expect(text).not.toContain('other-secret');
});

test('a second API key is removed, with a note', () => {
  const explanation = asked(
    `api_key=${SECRET}`,
    'api_key=other-secret',
    'method=GET',
    'path=/open/v5/user-chats',
  );
  expect(explanation.derive[0]?.outcome).toBe(
    'the API key is in the table: tenant=acme; further api_key entries removed: 1',
  );
  expect(explanation.result).toBe('The rule at tenant/group=user-chats applies.');
  expect(JSON.stringify(explanation)).not.toContain('secret');
});

describe('the reason why no rule applies', () => {
  test.each([
    [[], 'The descriptor has no entries: no limit.'],
    [['foo=1'], 'Nothing in the policy matches entry 1: no limit.'],
    [['tenant=a', 'group=x', 'more=1'], 'Nothing in the policy matches entry 3: no limit.'],
    [['exempt=me'], 'The descriptor ends at exempt, which has no rate_limit: no limit.'],
    [['tenant=a'], 'The descriptor ends at tenant, which has no rate_limit: no limit.'],
  ])('%j', (texts, result) => {
    const explanation = asked(...texts);
    expect(explanation).toMatchObject({ result, rules: [] });
    expect(renderExplanation(explanation, NOW)).toContain(`result:     ${result}\n`);
  });

  test('a node without a limit may get one', () => {
    expect(asked('exempt=me').to_match).toEqual([
      'Rules exist for tenant/group.',
      'Or add a rate_limit to exempt.',
    ]);
  });

  test('values are shown, but no secrets', () => {
    const rule = 'rate_limit: { unit: day, requests_per_unit: 1 }';
    const domain = policyOf(`domain: d
descriptors:
- { key: plan, value: gold, ${rule} }
- { key: plan, value: free, descriptors: [{ key: user, ${rule} }] }
- { key: authorization, value: hunter22, ${rule} }
- { key: meant, on_unmatched: ignore, descriptors: [{ key: user, ${rule} }] }
`);
    const set = { domains: new Map([['d', domain]]), version: '' };
    const toMatch = (...texts: string[]) => explain(set, 'd', entries(...texts)).to_match.slice(1);
    expect(toMatch('plan=golden')).toEqual([
      'The rules with these keys are plan=gold.',
      'The nearest value is plan=gold: did you mean this value?',
    ]);
    expect(toMatch('plan=gold', 'user=u')).toEqual(['The rules with these keys are plan=free/user.']);
    expect(toMatch('authorization=hunter2').join()).not.toMatch('hunter');
    expect(toMatch('meant=x')).toEqual([
      'If no limit is intended, no change is needed: the policy sets on_unmatched: ignore here.',
    ]);
  });

  test('an unknown domain, without API keys', () => {
    const explanation = explain(policySet, 'open-apu', entries(`api_key=${SECRET}`));
    expect(explanation.result).toBe('The domain is unknown: no limit. Known domains: "open-api".');
    expect(renderExplanation(explanation, NOW)).not.toContain(SECRET);
    expect(explanation.to_match).toEqual(['Did you mean open-api?']);
    expect(explain({ domains: new Map(), version: '' }, 'd', []).result).toContain('Known domains: none.');
  });

  test('without a matching derive rule', () => {
    expect(asked('method=GET', 'path=/x').derive[1]).toEqual({
      path: 'derive[1]',
      step: 'group from method, path: 2 rules',
      applied: false,
      outcome: 'no rule matches, so the entries stay unchanged',
    });
  });
});

test('redaction covers the secret keys of a policy and well-known credentials, and keeps the other values', () => {
  const given = entries('api_key=s', 'x=1');
  expect(redactEntries(given, policy.secretKeys)).toEqual([
    { key: 'api_key', value: `[redacted sha256:${hex('s').slice(0, 8)}]` },
    { key: 'x', value: '1' },
  ]);
  expect(redactEntries(given, new Set())).toEqual(redactEntries(given, policy.secretKeys));
  expect(redactEntries(entries('Authorization=s'), new Set())[0]?.value).toContain('redacted');
  expect(redactEntries(entries('x=1'), new Set(['x']))[0]?.value).toContain('redacted');
  const open = entries('x=1', 'tenant=acme');
  expect(redactEntries(open, policy.secretKeys)).toBe(open);
  expect(policy).toBeInstanceOf(CompiledPolicy);
});
