import { describe, expect, test } from '@jest/globals';
import { explain } from '../../../../src/config/show/explain.js';
import { policyItems } from '../../../../src/config/threads/policy-transfer.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import type { CompiledPolicy } from '../../../../src/policy/compiled-policy.js';
import { cases } from '../../../support/assert/cases.js';
import { entries, parse, policyOf, setOf } from '../../../support/policy/policies.js';
import { transferredPolicies } from '../../../support/policy/transferred-policies.js';

const ANY = 'rate_limit: { unit: second, requests_per_unit: 1 }';

/** Returns a policy with these nodes on its first level, one per line. */
const nodes = (...lines: string[]): string =>
  `domain: d\ndescriptors:\n${lines.map((line) => `- { ${line} }\n`).join('')}`;

function pathOf(policy: CompiledPolicy, entry: string): string {
  return policy.match(entries(entry)).rules[0]?.path ?? '-';
}

function keyOf(policy: CompiledPolicy, entry: string): string {
  return policy.match(entries(entry)).keys[0] ?? '-';
}

function errorsOf(text: string): string[] {
  return parse(text).problems.errors.map(formatProblem);
}

const ORDER = nodes(
  `key: k, ${ANY}`,
  `key: k, value_regex: "1.*", ${ANY}`,
  `key: k, value_regex: [".*9", "[0-9.]+"], ${ANY}`,
  `key: k, value: "10.1.*", ${ANY}`,
  `key: k, value_cidr: 10.0.0.0/8, ${ANY}`,
  `key: k, value_cidr: [10.2.0.0/16, "2001:db8::/32", "::/0"], ${ANY}`,
  `key: k, value_cidr: 0.0.0.0/5, ${ANY}`,
  `key: k, value: 10.2.0.1, ${ANY}`,
  `key: k, value: "2001:DB8::5", ${ANY}`,
);

describe('order at a level', () => {
  const policy = policyOf(ORDER);

  test.each([
    ['k=10.2.0.1', 'k=10.2.0.1'],
    ['k=10.2.0.2', 'k in 10.2.0.0/16,…'],
    ['k=10.1.0.1', 'k in 10.0.0.0/8'],
    ['k=::ffff:10.2.0.2', 'k in 10.2.0.0/16,…'],
    ['k=::ffff:0a02:0002', 'k in 10.2.0.0/16,…'],
    ['k=7.255.255.255', 'k in 0.0.0.0/5'],
    ['k=8.0.0.0', 'k~.*9,…'],
    ['k=11.0.0.0', 'k~1.*'],
    ['k=2001:db8::1', 'k in 10.2.0.0/16,…'],
    ['k=2001:DB8::5', 'k=2001:DB8::5'],
    ['k=2001:db8::5', 'k in 10.2.0.0/16,…'],
    ['k=::ffff:8.0.0.1', 'k'],
    ['k=10.1.x', 'k=10.1.*'],
    ['k=10.2.0.2:80', 'k~1.*'],
    ['k=10.02.0.2', 'k~1.*'],
    ['k=[::1]', 'k'],
    ['k=fe80::1%eth0', 'k'],
    ['k=x9', 'k~.*9,…'],
    ['k=9x', 'k'],
    ['k=', 'k'],
    ['k', 'k'],
    ['other=10.0.0.1', '-'],
  ])('%s matches %s', (entry, path) => {
    // The second time, the result of the regular expressions comes from the cache.
    expect(pathOf(policy, entry)).toBe(path);
    expect(pathOf(policy, entry)).toBe(path);
  });

  test('regular expressions are tried in file order, over any number of nodes', () => {
    const many = policyOf(
      nodes(...Array.from({ length: 100 }, (_, i) => `key: k, value_regex: ["a${i}", "[ab]${i}.*"], ${ANY}`)),
    );
    expect(pathOf(many, 'k=a77')).toBe('k~a7,…');
    expect(pathOf(many, 'k=b99')).toBe('k~a9,…');
    expect(pathOf(many, 'k=c99')).toBe('-');
  });

  test('a pattern may match the empty value, and matches only whole values', () => {
    const policy = policyOf(nodes(`key: k, value_regex: "a*|b", ${ANY}`));
    expect(['k', 'k=aa', 'k=b', 'k=ab', 'k=bc'].map((entry) => pathOf(policy, entry))).toEqual([
      'k~a*|b',
      'k~a*|b',
      'k~a*|b',
      '-',
      '-',
    ]);
  });

  test('values of any length are matched', () => {
    const policy = policyOf(nodes(`key: k, value_regex: "a*", ${ANY}`, `key: k, ${ANY}`));
    expect(pathOf(policy, `k=${'a'.repeat(100_000)}`)).toBe('k~a*');
    expect(pathOf(policy, `k=${'a'.repeat(100_000)}b`)).toBe('k');
  });

  test('each level caches its own results', () => {
    const policy = policyOf(`
domain: d
descriptors:
- { key: a, value_regex: "x+", ${ANY} }
- { key: b, value_regex: "x+", ${ANY} }
- { key: b, ${ANY} }
`);
    for (let round = 0; round < 3; round++) {
      expect([pathOf(policy, 'a=x'), pathOf(policy, 'b=x'), pathOf(policy, 'b=y')]).toEqual([
        'a~x+',
        'b~x+',
        'b',
      ]);
      for (let i = 0; i < 5000; i++) pathOf(policy, `a=${i}`);
    }
  });
});

describe('buckets', () => {
  test('are separate for each address, in any spelling, or for each value', () => {
    const policy = policyOf(
      nodes(
        `key: ip, value_cidr: ["2001:db8::/32", 10.0.0.0/8], ${ANY}`,
        `key: ip, value: 10.0.0.1, ${ANY}`,
        `key: path, value_regex: "/v[0-9]+", ${ANY}`,
        `key: api_key, value_cidr: 0.0.0.0/0, ${ANY}`,
      ),
    );
    expect(keyOf(policy, 'ip=2001:DB8:0:0::1')).toBe('1:d2:ip@11:2001:db8::1%1');
    expect(keyOf(policy, 'ip=2001:db8::0.0.0.1')).toBe('1:d2:ip@11:2001:db8::1%1');
    expect(keyOf(policy, 'ip=::ffff:10.0.0.1')).toBe('1:d2:ip@8:10.0.0.1%1');
    expect(keyOf(policy, 'ip=10.0.0.1')).toBe('1:d2:ip8:10.0.0.1%1');
    expect(keyOf(policy, 'path=/v1')).toBe('1:d4:path3:/v1%1');
    expect(keyOf(policy, 'api_key=10.0.0.1')).toMatch(/^1:d7:api_key@#[0-9a-f]{64}%1$/);
  });

  test('are shared by a node with share_threshold, even if its list grows', () => {
    const share = (blocks: string, patterns: string): CompiledPolicy =>
      policyOf(
        nodes(
          `key: ip, value_cidr: ${blocks}, share_threshold: true, ${ANY}`,
          `key: path, value_regex: ${patterns}, share_threshold: true, ${ANY}`,
        ),
      );
    for (const policy of [
      share('10.0.0.0/8', '"/a.*"'),
      share('[10.0.0.0/8, 9.0.0.0/8]', '["/a.*", "/b"]'),
    ]) {
      expect(keyOf(policy, 'ip=10.1.2.3')).toBe('1:d2:ip@10*10.0.0.0/8%1');
      expect(keyOf(policy, 'ip=10.1.2.4')).toBe('1:d2:ip@10*10.0.0.0/8%1');
      expect(keyOf(policy, 'path=/ab')).toBe('1:d4:path^4*/a.*%1');
    }
    expect(keyOf(share('10.0.0.0/8', `"${'a'.repeat(129)}"`), `path=${'a'.repeat(129)}`)).toMatch(
      /^1:d4:path\^\*[0-9a-f]{64}%1$/,
    );
  });

  test('statistics contain the first block or pattern, or the value if configured', () => {
    const policy = policyOf(
      nodes(
        `key: ip, value_cidr: [10.0.0.0/8, "::/0"], ${ANY}`,
        `key: path, value_regex: "/v.*", value_to_metric: true, ${ANY}`,
        `key: all, value_regex: "/v.*", share_threshold: true, detailed_metric: true, ${ANY}`,
      ),
    );
    const statOf = (entry: string) => policy.match(entries(entry)).statNames;
    expect(statOf('ip=10.1.1.1')).toEqual(['d.ip_10_0_0_0/8']);
    expect(statOf('path=/v1')).toEqual(['d.path_/v1']);
    expect(statOf('all=/v1')).toEqual(['d.all_/v_*']);
  });
});

describe('errors', () => {
  test.each([
    ...cases`
      key: k, value_cidr: 10.0.0.1/8
        3:25: descriptors[0].value_cidr: "10.0.0.1/8" has bits set after its prefix; write 10.0.0.0/8, or 10.0.0.1/32
          for this one address
      key: k, value_cidr: [10.0.0.0/8, 1.2.3.4/33]
        3:38: descriptors[0].value_cidr[1]: "1.2.3.4/33" has no prefix length after its "/"; write a number from 0 to
          32
      key: k, value_cidr: "::ffff:10.0.0.1/104"
        3:25: descriptors[0].value_cidr: "::ffff:10.0.0.1/104" has bits set after its prefix; write 10.0.0.0/8, or
          10.0.0.1/32 for this one address
      key: k, value_cidr: [10.0.0.0/8, "::ffff:10.0.0.0/104"]
        3:38: descriptors[0].value_cidr[1]: "10.0.0.0/8" is listed twice; remove one
      key: k, value_cidr: []
        3:25: descriptors[0].value_cidr: the list "value_cidr" is empty; add an item, or remove the list
      key: k, value_cidr: ""
        3:25: descriptors[0].value_cidr: "value_cidr" is empty; write a value after it, or remove the key
      key: k, value_cidr: { a: b }
        3:25: descriptors[0].value_cidr: "value_cidr" must be a string or a list of strings, not a mapping
      key: k, value: x, value_cidr: 10.0.0.0/8
        3:35: descriptors[0].value_cidr: "value_cidr" cannot be combined with "value"; keep one of the two
      key: k, value_cidr: 10.0.0.0/8, value_regex: x
        3:50: descriptors[0].value_regex: "value_regex" cannot be combined with "value_cidr"; write two descriptors
      key: k, value_regex: "a("
        3:26: descriptors[0].value_regex: this is not a valid RE2 regular expression (missing closing ): \`a(\`);
          correct the expression (RE2 does not support lookaround or backreferences)
    `,
    [
      'key: k, value_regex: "(ab){1000}"',
      /compiles to [0-9]+ instructions, more than the maximum of 500; use smaller repetition counts$/,
    ],
    [`key: k, value_regex: "${'a'.repeat(1025)}"`, /may have at most 1024 characters, not 1025; shorten it$/],
  ])('%s', (node, error) => {
    const errors = errorsOf(nodes(`${node}`));
    if (typeof error === 'string') expect(errors).toEqual([`policy.yaml:${error}`]);
    else expect(errors).toEqual([expect.stringMatching(error)]);
  });

  test('a block or a pattern in two nodes of one level', () => {
    expect(
      errorsOf(
        nodes(
          'key: k, value_cidr: [10.0.0.0/8, 192.168.0.0/16]',
          'key: k, value_cidr: [9.0.0.0/8, "::ffff:192.168.0.0/112"]',
          'key: k, value: 10.0.0.0/8',
          'key: l, value_cidr: 10.0.0.0/8',
          'key: l, value_regex: [a, b]',
          'key: l, value_regex: b',
        ),
      ),
    ).toEqual([
      'policy.yaml:4:25: descriptors[1]: "192.168.0.0/16" is defined twice at this level, first in ' +
        'policy.yaml:3:25; merge the two descriptors, or remove one of them',
      'policy.yaml:8:26: descriptors[5]: "b" is defined twice at this level, first in policy.yaml:7:26; ' +
        'merge the two descriptors, or remove one of them',
    ]);
  });
});

describe('shown', () => {
  const policySet = setOf(policyOf(ORDER));

  test.each([
    [
      'k=8.0.0.0',
      [
        'k=10.2.0.1, k=2001:DB8::5: the value does not match',
        'k in 10.0.0.0/8, k in 10.2.0.0/16,…, k in 0.0.0.0/5: no block contains the address',
        'k=10.1.*: the pattern does not match',
        'k~1.*: the regular expression does not match the whole value',
        '> k~.*9,…: [0-9.]+ matches the whole value',
      ],
    ],
    [
      'k=-',
      [
        'k=10.2.0.1, k=2001:DB8::5: the value does not match',
        'k in 10.0.0.0/8, k in 10.2.0.0/16,…, k in 0.0.0.0/5: the value is not an IP address',
        'k=10.1.*: the pattern does not match',
        'k~1.*, k~.*9,…: the regular expression does not match the whole value',
        '> k: no value set: matches any value',
      ],
    ],
  ])('the patterns that %s was compared with', (entry, lines) => {
    const [level] = explain(policySet, 'd', entries(entry)).levels;
    expect(level?.tried.map(({ node, matched, why }) => `${matched ? '> ' : ''}${node}: ${why}`)).toEqual(
      lines,
    );
  });

  test('long patterns are shortened, but still distinguishable', () => {
    const long = 'a'.repeat(100);
    const policy = policyOf(
      nodes(`key: k, value_regex: "${long}b", ${ANY}`, `key: k, value_regex: "${long}c", ${ANY}`),
    );
    const paths = policy.rules.map(({ path }) => path);
    expect(new Set(paths).size).toBe(2);
    for (const path of paths) expect(path).toMatch(/^k~a{60}…[0-9a-f]{8}$/);
  });
});

test('patterns are compiled one by one before another thread uses a policy', () => {
  const regexes = Array.from({ length: 100 }, (_, i) => `key: k, value_regex: "r${i}-.*", ${ANY}`);
  const text = ORDER + nodes(...regexes).slice('domain: d\ndescriptors:\n'.length);
  const before = policyOf(text);
  // Those above, three of the order, and its blocks.
  expect([...before.compile()]).toHaveLength(104);
  const after = transferredPolicies(policyItems(setOf(before))).domains.get('d') as CompiledPolicy;
  for (const value of ['10.2.0.2', '2001:db8::1', '10.1.x', 'r77-', 'x', '9']) {
    expect(after.match(entries(`k=${value}`))).toEqual(before.match(entries(`k=${value}`)));
  }
});
