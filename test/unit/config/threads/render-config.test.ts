import { expect, test } from '@jest/globals';
import { type ConfigForm, rlconfigText } from '../../../../src/config/show/dump.js';
import { MAX_RULES_AT_ONCE, renderConfig } from '../../../../src/config/threads/policy-task.js';
import { policyOf, setOf } from '../../../support/policy/policies.js';

const FORMS: readonly ConfigForm[] = ['lines', 'tree', 'json'];

/** Returns what `/rlconfig` shows of a policy with this number of rules, secrets, derived entries and plans. */
function shownConfig(rules: number) {
  const lines = Array.from(
    { length: rules - 2 },
    (_, at) => `{ key: k, value: "v${at}", rate_limit: { unit: minute, requests_per_unit: ${at} } }`,
  );
  const policy = policyOf(`
domain: d
phase: { grace_period: "1970-01-01T00:00:01Z", active: "1970-01-01T00:00:03Z" }
derive:
  - { entry: group, from: [path], rules: [{ path: "/a/**", value: a }] }
plans: { by: tenant, default: free, define: { free: { rate: 5 } } }
descriptors:
  - key: api_key
    value: sk-very-secret
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: { plan: rate }, fill_interval: 1s } }
  - ${lines.join('\n  - ')}
`);
  return {
    policySet: setOf(policy),
    domains: [{ domain: 'd', state: 'ok' as const, files: ['d.yaml'] }],
    errors: [],
    wallMicros: 2_000_000,
  };
}

test.each([MAX_RULES_AT_ONCE, MAX_RULES_AT_ONCE + 1])(
  'the text of a policy with %d rules is the same in a thread',
  async (rules) => {
    const shown = shownConfig(rules);
    for (const form of FORMS) {
      const text = String(await renderConfig(form, shown));
      expect(text).toBe(rlconfigText(form, shown));
      expect(text).not.toContain('very-secret');
      expect(text).toContain('v900');
    }
  },
);

test('without a policy, only the JSON has a text', async () => {
  const nothing = { policySet: undefined, domains: [], errors: [], wallMicros: 0 };
  expect(await renderConfig('lines', nothing)).toBe('');
  expect(await renderConfig('tree', nothing)).toBe('');
  expect(JSON.parse(String(await renderConfig('json', nothing)))).toEqual({
    version: 'none',
    domains: [],
    errors: [],
  });
});
