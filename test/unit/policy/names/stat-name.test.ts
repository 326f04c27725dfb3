import { describe, expect, test } from '@jest/globals';
import { entries, policyOf } from '../../../support/policy/policies.js';

const ANY = 'rate_limit: { unit: minute, requests_per_unit: 1 }';
const KEY = 'an-api-key';

/** A policy with one chain of descriptors. The last one has the rule. */
function chain(...nodes: string[]): ReturnType<typeof policyOf> {
  const tree = nodes.reduceRight(
    (below, node, i) => `{ ${node}, ${i === nodes.length - 1 ? ANY : `descriptors: [${below}]`} }`,
    '',
  );
  return policyOf(`domain: dom\ndescriptors: [${tree}]\n`);
}

/** Returns the fixed name and the name for a request. They are equal if the name contains no value of the request. */
function namesOf(policy: ReturnType<typeof policyOf>, ...texts: string[]): readonly (string | undefined)[] {
  return [policy.rules[0]?.statName, policy.match(entries(...texts)).statNames[0]];
}

describe('names with values of the policy', () => {
  test.each([
    [['key: a'], ['a=1'], 'dom.a'],
    [['key: a, value: x'], ['a=x'], 'dom.a_x'],
    [['key: a, value: "x*"'], ['a=xyz'], 'dom.a_x*'],
    [['key: a, value: x', 'key: b'], ['a=x', 'b=1'], 'dom.a_x.b'],
    [
      ['key: a, value: 10.0.0.1', 'key: "b:c", value: d|e'],
      ['a=10.0.0.1', 'b:c=d|e'],
      'dom.a_10.0.0.1.b:c_d|e',
    ],
    [['key: a, value: x, detailed_metric: true', 'key: b'], ['a=x', 'b=1'], 'dom.a_x.b'],
    [['key: a, value: x', 'key: b, value: y, detailed_metric: true'], ['a=x', 'b=y'], 'dom.a_x.b_y'],
    [['key: a, value: "x*", share_threshold: true, detailed_metric: true'], ['a=xyz'], 'dom.a_x*'],
    [['key: a, value: "x*", share_threshold: true, value_to_metric: true'], ['a=xyz'], 'dom.a_x*'],
    [['key: a, value: x, value_to_metric: true'], ['a=x'], 'dom.a_x'],
  ])('%j', (nodes, texts, name) => {
    expect(namesOf(chain(...nodes), ...texts)).toEqual([name, name]);
  });
});

describe('names with values of the request', () => {
  test.each([
    [['key: a, detailed_metric: true'], ['a=1'], 'dom.a_1'],
    [['key: a, detailed_metric: true'], ['a='], 'dom.a_'],
    [['key: a', 'key: b, value: "y*", detailed_metric: true'], ['a=1', 'b=y2'], 'dom.a_1.b_y2'],
    [
      ['key: a, value: "s*", share_threshold: true', 'key: b, detailed_metric: true'],
      ['a=s1', 'b=2'],
      'dom.a_s*.b_2',
    ],
    [
      ['key: a, value: "s*", share_threshold: true', 'key: b, detailed_metric: true'],
      ['a=s1', 'b='],
      'dom.a_s*.b',
    ],
    [['key: a, value_to_metric: true'], ['a=1'], 'dom.a_1'],
    [['key: a, value_to_metric: true'], ['a='], 'dom.a'],
    [['key: a, value: "x*", value_to_metric: true'], ['a=x1'], 'dom.a_x1'],
    [['key: a', 'key: b, value_to_metric: true', 'key: c'], ['a=1', 'b=2', 'c=3'], 'dom.a.b_2.c'],
    [
      ['key: a, value: "s*", share_threshold: true', 'key: b, value_to_metric: true'],
      ['a=s1', 'b=2'],
      'dom.a_s*.b_2',
    ],
  ])('%j %j', (nodes, texts, name) => {
    const policy = chain(...nodes);
    // Sent three times. The second name is cached, and the third is read from the cache.
    for (let i = 0; i < 3; i++) expect(namesOf(policy, ...texts)).toEqual(['', name]);
  });

  test('each value has its own name', () => {
    const policy = chain('key: a, detailed_metric: true');
    for (const value of ['1', '2', '1', '2', '1'])
      expect(namesOf(policy, `a=${value}`)[1]).toBe(`dom.a_${value}`);
  });
});

describe('secrets', () => {
  test('of a request', () => {
    for (const flag of ['detailed_metric', 'value_to_metric']) {
      const [, name] = namesOf(chain(`key: API_Key, ${flag}: true`), `API_Key=${KEY}`);
      expect(name).toMatch(/^dom\.API_Key_\[redacted sha256:[0-9a-f]{8}\]$/);
    }
  });

  test('of the policy', () => {
    const [fixed, name] = namesOf(chain(`key: authorization, value: ${KEY}`), `authorization=${KEY}`);
    expect(name).toBe(fixed);
    expect(fixed).toMatch(/^dom\.authorization_\[redacted sha256:[0-9a-f]{8}\]$/);
  });

  test('of a derive table, even if a node has the key of its source', () => {
    const policy = policyOf(`
domain: dom
derive: [{ entry: tenant, from: [token], sha256: {} }]
descriptors:
  - { key: tenant, detailed_metric: true, ${ANY} }
  - { key: token, value: ${KEY}, ${ANY} }
`);
    expect(policy.match(entries(`token=${KEY}`)).statNames[0]).toMatch(/^dom\.tenant_sha256:[0-9a-f]{64}$/);
    expect(policy.rules.map((rule) => rule.statName).join()).not.toContain(KEY);
  });
});

test('without a rule, there is no name', () => {
  const policy = chain('key: a', 'key: b');
  for (const texts of [['a=1'], ['c=1'], []]) expect(policy.match(entries(...texts)).statNames).toEqual([]);
});
