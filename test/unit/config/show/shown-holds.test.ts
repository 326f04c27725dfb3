import { expect, test } from '@jest/globals';
import { dumpJson } from '../../../../src/config/show/dump.js';
import { explain } from '../../../../src/config/show/explain.js';
import { policyOf, setOf } from '../../../support/policy/policies.js';

const NOW = Date.UTC(2026, 0, 1) * 1000;

const set = setOf(
  policyOf(`
domain: d
descriptors:
  - key: customer
    rate_limit: { name: exports, concurrency: { max: 10 } }
  - key: model
    rate_limits:
      - { name: budget, unit: day, requests_per_unit: 100000, hold: { amount: 5000, pair: oldest }, max_debt: 0 }
      - name: rate
        token_bucket: { max_tokens: 9000, fill_interval: 1s }
        hold: { from: first_call, expires_after: 30s, unknown: free }
`),
);

test.each([
  ['hold', undefined],
  ['token', 'token'],
])('weir explain says that the entry %s ends requests in a domain with holds', (key, holdEntry) => {
  const given = [{ key, value: 'AQ' }];
  const { result, levels, to_match, rules } = explain(set, 'd', given, holdEntry);
  expect({ levels, to_match, rules }).toEqual({ levels: [], to_match: [], rules: [] });
  expect(result).toBe(
    `The entry ${key} contains a hold token: the descriptor ends a request, and no limit applies to it.`,
  );
  expect(explain(set, 'd', given, 'other').result).toMatch(/^Nothing in the policy matches/);
});

test('/rlconfig shows limits with the fields of the policy file', () => {
  const { domains } = JSON.parse(
    JSON.stringify(dumpJson(set, [{ domain: 'd', files: [], state: 'ok' }], [], NOW)),
  );
  expect(domains[0].policy.rules.map(({ limit }: { readonly limit: unknown }) => limit)).toEqual([
    { concurrency: { max: 10, expires_after: '1m' } },
    {
      unit: 'day',
      requests_per_unit: 100_000,
      hold: { amount: 5000, expires_after: '10m', unknown: 'keep', pair: 'oldest' },
      max_debt: 0,
    },
    {
      token_bucket: { max_tokens: 9000, tokens_per_fill: 1, fill_interval: '1s' },
      hold: { from: 'first_call', expires_after: '30s', unknown: 'free', pair: 'token' },
      max_debt: 9000,
    },
  ]);
});
