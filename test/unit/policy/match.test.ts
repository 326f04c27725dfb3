import { describe, expect, test } from '@jest/globals';
import { MatchWork } from '../../../src/policy/match-work.js';
import { fixedPhase, phaseAt } from '../../../src/policy/rule.js';
import { entries, policyOf } from '../../support/policy/policies.js';

const ANY = 'rate_limit: { unit: second, requests_per_unit: 1 }';

/** Returns the path of the rule that entries match, or '-' if they match none. */
function pathOf(policy: ReturnType<typeof policyOf>, ...texts: string[]): string {
  return policy.match(entries(...texts)).rules[0]?.path ?? '-';
}

describe('depth', () => {
  const policy = policyOf(`
domain: d
descriptors:
  - key: a
    ${ANY}
    descriptors:
      - { key: b, value: 1, ${ANY} }
  - key: a
    value: special
    descriptors:
      - { key: c, ${ANY} }
`);

  test('a rule applies only where the descriptor ends', () => {
    expect(pathOf(policy, 'a=x')).toBe('a');
    expect(pathOf(policy, 'a=x', 'b=1')).toBe('a/b=1');
    expect(pathOf(policy, 'a=x', 'b=2')).toBe('-');
    expect(pathOf(policy, 'a=x', 'b=1', 'c=1')).toBe('-');
    expect(pathOf(policy, 'b=1')).toBe('-');
    expect(policy.match([]).rules[0]).toBeUndefined();
  });

  test('the first node that matches is final', () => {
    expect(pathOf(policy, 'a=special', 'c=1')).toBe('a=special/c');
    expect(pathOf(policy, 'a=special', 'b=1')).toBe('-');
    expect(pathOf(policy, 'a=special')).toBe('-');
  });

  test('without a match: no key, and the settings of the file', () => {
    const match = policy.match(entries('z=1'));
    expect(match).toMatchObject({ rules: [], keys: [], hashTagLength: 0, onStoreFailure: 'error' });
    expect(match.phase).toEqual(fixedPhase('active'));
    const given = entries('z=1');
    expect(policy.match(given).entries).toBe(given);
  });
});

test('names of members that every object has are ordinary keys and values', () => {
  const policy = policyOf(
    `domain: d\ndescriptors: [{ key: __proto__, value: constructor, ${ANY} }, { key: toString, ${ANY} }]\n`,
  );
  expect(pathOf(policy, '__proto__=constructor')).toBe('__proto__=constructor');
  expect(pathOf(policy, '__proto__=toString')).toBe('-');
  expect(pathOf(policy, 'toString=x')).toBe('toString');
  expect(pathOf(policy, 'constructor=x')).toBe('-');
});

describe('phases', () => {
  const policy = policyOf(`
domain: d
phase: monitoring
descriptors:
  - { key: file, ${ANY} }
  - key: node
    phase: grace_period
    ${ANY}
    descriptors:
      - { key: inherits, ${ANY} }
      - { key: own, phase: active, ${ANY} }
      - key: scheduled
        phase: { grace_period: 2024-05-01T00:00:00Z, active: 2024-05-15T00:00:00Z }
        ${ANY}
      - { key: late, phase: { active: 2024-05-15T00:00:00Z }, ${ANY} }
      - { key: graced, phase: { grace_period: 2024-05-01T00:00:00Z }, ${ANY} }
      - { key: no_rule, phase: active }
`);
  const at = (time: string, ...texts: string[]): string =>
    phaseAt(policy.match(entries(...texts)).phase, Date.parse(time) * 1000);
  const anyTime = '2024-05-10T00:00:00Z';

  test('the phase of the closest node applies, starting with the node itself', () => {
    expect(at(anyTime, 'file=1')).toBe('monitoring');
    expect(at(anyTime, 'node=1')).toBe('grace_period');
    expect(at(anyTime, 'node=1', 'inherits=1')).toBe('grace_period');
    expect(at(anyTime, 'node=1', 'own=1')).toBe('active');
    expect(at(anyTime, 'node=1', 'no_rule=1')).toBe('active');
    expect(at(anyTime, 'unknown=1')).toBe('monitoring');
  });
});

test('a policy remembers matches by their entries, and its answers stay the same', () => {
  const policy = policyOf(`
domain: d
derive:
  - { entry: group, from: [path], rules: [{ path: "/items/*", value: items }] }
plans: { by: tenant, define: { big: { n: 9 } } }
descriptors:
  - { key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: n, default: 1 } } }
  - { key: group, value: items, ${ANY} }
  - { key: long, value: "x*", ${ANY} }
`);
  const texts = [
    ...['path=/items/1', 'path=/other', 'tenant=big', 'none=1', `long=${'x'.repeat(300)}`],
    ...Array.from({ length: 9 }, (_, i) => `tenant=${i}`),
  ];
  const lists = [[], ...texts.map((text) => entries(text))];
  const expected = lists.map((list) => policy.match([...list]));
  const recurring = expected.map((_, i) => lists[(i * 7) % 3] as (typeof lists)[number]);
  for (let round = 0; round < 3; round++) {
    for (const list of [...lists, ...recurring, ...lists.slice(0, 8)]) {
      expect(policy.match(list)).toEqual(expected[lists.indexOf(list)]);
    }
  }
});

test('a match that exceeded a bound is not remembered', () => {
  const policy = policyOf(`domain: d\ndescriptors: [{ key: k, value: "a*", ${ANY} }]`);
  const given = entries('k=abc');
  const work = new MatchWork(1);
  policy.match(given, work);
  expect(work.exceeded).toBe('match_work');
  expect(policy.match(given).rules[0]?.path).toBe('k=a*');
});
