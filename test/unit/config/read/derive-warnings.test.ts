import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { cases } from '../../../support/assert/cases.js';
import { parse } from '../../../support/policy/policies.js';

function warningsOf(text: string): readonly string[] {
  const { policy, problems } = parse(text);
  expect(policy).toBeDefined();
  return problems.warnings.map((problem) => formatProblem(problem).slice('policy.yaml:'.length));
}

/** Returns a policy with these rules for method and path. */
const rules = (...items: readonly string[]): string => `domain: d
derive:
- entry: group
  from: [method, path]
  rules:
${items.map((item) => `  - { ${item} }\n`).join('')}`;

describe('a rule of derive that matches nothing', () => {
  test.each(cases<[string, string?]>`
    path: "a/*", value: x
      6:13: derive[0].rules[0].path: the value does not begin with "/", so it is compared literally, including its
        wildcards; write "/a/*"
    path: a, value: x
      6:13: derive[0].rules[0].path: the value does not begin with "/", so it is compared literally; write "/a"
    method: "P*", path: /a, value: x
      6:15: derive[0].rules[0].method: the value does not begin with "/", so it is compared literally, including its
        wildcards; only paths can have wildcards
    method: get, value: x
      6:15: derive[0].rules[0].method: the case of a method counts, and clients send "GET"; write "GET"
    method: GET, path: "/a/*", value: x
    method: Purge, value: x
  `)('%s', (rule, warning = '') => {
    expect(warningsOf(rules(rule))).toEqual(warning === '' ? [] : [warning]);
  });

  test('no message shows an API key', () => {
    const text =
      'domain: d\nderive:\n- { entry: e, from: [api_key], rules: [{ api_key: "SECRET/*", value: x }] }\n';
    expect(warningsOf(text)).toEqual([
      '3:51: derive[0].rules[0].api_key: the value does not begin with "/", so it is compared literally, including ' +
        'its wildcards; write a "/" at the beginning',
    ]);
  });
});

describe('a rule of derive after one that matches the same requests', () => {
  const later =
    'derive[0].rules[1]: this rule never applies, because derive[0].rules[0] matches the same requests and comes ' +
    'first; remove one of the two';
  test.each<[first: string, second: string, isWarned: boolean]>([
    ['path: /a, value: x', 'path: /a, value: y', true],
    ['path: "/{a,b}/*", value: x', 'path: "/{a,b}/*/", value: y', true],
    ['path: /a, value: x', 'method: GET, path: /a, value: y', true],
    ['value: x', 'method: GET, path: /a, value: y', true],
    ['method: GET, path: /a, value: x', 'path: /a, value: y', false],
    ['method: GET, path: /a, value: x', 'method: POST, path: /a, value: y', false],
    ['path: /a, value: x', 'path: /A, value: y', false],
  ])('%s, then %s', (first, second, isWarned) => {
    expect(warningsOf(rules(first, second))).toEqual(isWarned ? [`7:5: ${later}`] : []);
  });
});

describe('a descriptor that was meant for a derived entry', () => {
  const node = (fields: string): string =>
    `${rules('path: /a, value: chats', 'value: other')}descriptors:\n- { ${fields} }\n- { key: group, value: ` +
    `other }\n` +
    '- { key: k, descriptors: [{ key: group, value: chats }] }\n';
  test.each(cases<[string, string?]>`
    key: group, value: chat
      9:24: descriptors[0].value: no rule of "derive" sets the entry "group" to "chat", so no derived entry matches
        this descriptor; did you mean "chats"?
    key: group, value: invoices
      9:24: descriptors[0].value: no rule of "derive" sets the entry "group" to "invoices", so no derived entry
        matches this descriptor; correct the value, or add a rule with this value
    key: groups, value: chats
      9:10: descriptors[0].key: the derived entry is "group", not "groups"; did you mean "group"?
    key: Group => 9:10: descriptors[0].key: the derived entry is "group", not "Group"; did you mean "group"?
    key: method, value: Post
      9:25: descriptors[0].value: the case of a method counts, and clients send "POST"; write "POST"
    key: group, value: chats
    key: group, value: "cha*"
    key: group, value: "chars*"
      9:24: descriptors[0].value: no rule of "derive" sets the entry "group" to a value that matches "chars*", so no
        derived entry matches this descriptor; correct the pattern, or add a rule with such a value
    key: group, value_regex: x
    key: group2
    key: path, value: /a
  `)('%s', (fields, warning = '') => {
    expect(warningsOf(node(fields))).toEqual(warning === '' ? [] : [warning]);
  });

  test('a value of derive that no descriptor has', () => {
    const policy = (fields: string, file = '') =>
      `${rules('path: /a, value: chats', 'path: /b, value: other')}${file}descriptors:\n- { key: group, ${fields} }\n`;
    expect(warningsOf(policy('value: chats'))).toEqual([
      '7:24: derive[0].rules[1].value: no descriptor with the key "group" has the value "other", so this rule ' +
        'leads to ' +
        'no limit; correct the value, or add a descriptor with it (or on_unmatched: ignore, if no limit is meant)',
    ]);
    expect(warningsOf(policy('value: chats', 'on_unmatched: ignore\n'))).toEqual([]);
    for (const others of ['value: "*"', 'value_regex: x', 'rate_limit: { unlimited: true }'])
      expect(warningsOf(policy(others))).toEqual([]);
  });

  test('the values of a table are not known', () => {
    const text = `domain: d\nderive: [{ entry: tenant, from: [api_key], sha256: { ${'a'.repeat(64)}: acme } }]\n`;
    expect(warningsOf(`${text}descriptors: [{ key: tenant, value: globex }]\n`)).toEqual([]);
  });

  test('an item of derive, and plans, may misspell it, too', () => {
    const text =
      'domain: d\nderive:\n- { entry: tenant, from: [a], rules: [{ value: x }] }\n' +
      '- { entry: b, from: [tennant], rules: [{ value: x }] }\n' +
      'plans: { by: tenent, default: free, define: { free: { rate: 1 } } }\n' +
      'descriptors: [{ key: tenent, rate_limit: { unit: day, requests_per_unit: { plan: rate } } }]\n';
    expect(warningsOf(text)).toEqual([
      '4:21: derive[1].from: an earlier item derives the entry "tenant", not "tennant"; did you mean "tenant"?',
      '5:14: plans.by: the derived entry is "tenant", not "tenent"; did you mean "tenant"?',
      '6:22: descriptors[0].key: the derived entry is "tenant", not "tenent"; did you mean "tenant"?',
    ]);
  });
});
