/** The format of `weir explain --json`, which programs read. Any change here affects these programs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { explain } from '../../../../src/config/show/explain.js';
import { explanationJson } from '../../../../src/config/show/explain-text.js';
import { entries, policyOf } from '../../../support/policy/policies.js';
import { repositoryRoot } from '../../../support/process/tools.js';

const NOW = Date.parse('2024-05-10T00:00:00Z') * 1000;
const policy = policyOf(`
domain: shop
response_headers: [x-ratelimit]
algorithm: token_bucket
derive:
  - { entry: group, from: [path], rules: [{ path: "/v1/**", value: old }] }
  - { entry: tenant, from: [api_key], sha256: {} }
descriptors:
  - key: group
    value: old
    phase: { grace_period: 2024-05-01T00:00:00Z, active: 2024-05-15T00:00:00Z }
    shadow_mode: true
    enforce_percent: 12.5
    metadata: { team: [a, 1] }
    rate_limits:
      - name: burst
        unit: second
        requests_per_unit: 10
        replaces: [{ name: other }]
        on_store_failure: deny
        denied_response: { body: later, content_type: text/html }
      - { calendar: Europe/Berlin, unit: day, requests_per_unit: 250, allow_debt: true, response_headers: [], on_over: { allow: true, request_headers: [{ X-Over: day }], metadata: { tier: 2 } } }
  - { key: free, quota_mode: true, rate_limit: { unlimited: true, name: other } }
`);
const policySet = { domains: new Map([['shop', policy]]), version: '0123456789ab' };
const asked = (domain: string, ...texts: string[]) =>
  explanationJson(explain(policySet, domain, entries(...texts)), NOW, ({ rule, key }) =>
    rule.rate === undefined ? undefined : { key: `redis:${key}`, slot: key.length, node: 'a:6379' },
  );

const OF_ALL = {
  phase: {
    now: 'grace_period',
    grace_period: '2024-05-01T00:00:00.000Z',
    active: '2024-05-15T00:00:00.000Z',
  },
  plan_values: null,
  quota_mode: false,
  on_store_failure: 'error',
};

describe('an explanation for machines', () => {
  test('has this format', () => {
    expect(asked('shop', 'path=/v1/users')).toStrictEqual({
      domain: 'shop',
      file: 'policy.yaml',
      descriptor: [{ key: 'path', value: '/v1/users' }],
      derive: [
        {
          path: 'derive[0]',
          step: 'group from path: 1 rule',
          applied: true,
          outcome: 'path=/v1/** -> old',
        },
        {
          path: 'derive[1]',
          step: 'tenant from api_key: table of 0 API keys',
          applied: false,
          outcome: 'the descriptor has no entry api_key',
        },
      ],
      matched_as: [{ key: 'group', value: 'old' }],
      levels: [
        {
          entry: { key: 'group', value: 'old' },
          tried: [{ node: 'group=old', matched: true, why: 'the value matches' }],
          matched: 'group=old',
        },
      ],
      result: 'The 2 limits at group=old apply together: the request takes from all of them or from none.',
      to_match: [],
      rules: [
        {
          ...OF_ALL,
          path: 'group=old[burst]',
          name: 'burst',
          limit: { token_bucket: { max_tokens: 10, tokens_per_fill: 10, fill_interval: '1s' } },
          shadow_mode: true,
          enforce_percent: 12.5,
          replaces: ['other'],
          on_store_failure: 'deny',
          response_headers: ['x-ratelimit'],
          response_headers_of: 'file',
          request_headers: null,
          request_headers_of: 'environment',
          denied_response: { body: 'later', content_type: 'text/html' },
          denied_response_of: 'rule',
          priorities: null,
          lease: null,
          class: null,
          on_over: null,
          // biome-ignore lint/suspicious/noThenProperty: a key of policies
          then: null,
          metadata: { team: ['a', 1] },
          bucket: '4:shop5:group3:old~5:burst',
          redis_key: 'redis:4:shop5:group3:old~5:burst',
          redis_slot: 26,
          redis_node: 'a:6379',
          statistics: 'shop.group_old.burst',
        },
        {
          ...OF_ALL,
          path: 'group=old[2]',
          name: '',
          limit: {
            unit: 'day',
            requests_per_unit: 250,
            calendar: 'Europe/Berlin',
            allow_debt: true,
            max_debt: 250,
          },
          shadow_mode: true,
          enforce_percent: 12.5,
          replaces: [],
          response_headers: [],
          response_headers_of: 'rule',
          request_headers: null,
          request_headers_of: 'environment',
          denied_response: null,
          denied_response_of: null,
          priorities: null,
          lease: null,
          class: null,
          on_over: { allow: true, request_headers: [{ 'x-over': 'day' }], metadata: { tier: 2 } },
          // biome-ignore lint/suspicious/noThenProperty: a key of policies
          then: null,
          metadata: { team: ['a', 1] },
          bucket: '4:shop5:group3:old~2%day/Europe/Berlin',
          redis_key: 'redis:4:shop5:group3:old~2%day/Europe/Berlin',
          redis_slot: 38,
          redis_node: 'a:6379',
          statistics: 'shop.group_old.2',
        },
      ],
      plan: null,
      overrides: 'token_bucket',
      decision_metadata: null,
    });
  });

  test('has null for a missing limit, node or domain', () => {
    const none = {
      response_headers: null,
      response_headers_of: null,
      request_headers: null,
      request_headers_of: null,
    };
    const denied = { denied_response: null, denied_response_of: null };
    const place = { bucket: null, redis_key: null, redis_slot: null, redis_node: null };
    expect(asked('shop', 'free=x').rules).toMatchObject([
      { limit: { unlimited: true }, quota_mode: true, ...none, ...denied, ...place },
    ]);
    expect(asked('shop', 'group=new').levels).toStrictEqual([
      {
        entry: { key: 'group', value: 'new' },
        tried: [{ node: 'group=old', matched: false, why: 'the value does not match' }],
        matched: null,
      },
    ]);
    expect(asked('shop', 'group=new').to_match).toContainEqual(expect.stringContaining('group=old'));
    expect(asked('no such', 'group=old')).toMatchObject({
      file: null,
      derive: [],
      matched_as: [{ key: 'group', value: 'old' }],
      levels: [],
      overrides: null,
      decision_metadata: null,
    });
  });

  test('has exactly the fields in the manual', () => {
    const page = readFileSync(join(repositoryRoot, 'docs/reference/explain-json.md'), 'utf8');
    const told = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name);
    const found = asked('shop', 'path=/v1/users');
    const objects = [
      found,
      ...found.derive.slice(0, 1),
      ...found.levels.slice(0, 1),
      ...found.rules.slice(0, 1),
    ];
    expect([...told].sort()).toEqual(objects.flatMap((one) => Object.keys(one)).sort());
  });
});
