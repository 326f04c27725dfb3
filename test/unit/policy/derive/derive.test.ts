import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { entries, parse, policyOf } from '../../../support/policy/policies.js';

const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
const shown = (policy: ReturnType<typeof policyOf>, ...texts: string[]): string[] =>
  policy.match(entries(...texts)).entries.map(({ key, value }) => `${key}=${value}`);

describe('key tables', () => {
  const policy = policyOf(
    `
domain: d
derive:
  - { entry: tenant, from: [api_key], sha256: { ${hex('one').toUpperCase()}: acme, ${hex('ключ')}: globex }, sha256_file: secrets/keys.yaml }
`,
    { 'secrets/keys.yaml': `${hex('two')}: acme\n` },
  );

  test('keys are replaced by their tenants, including digests in upper case and files', () => {
    expect(shown(policy, 'api_key=one')).toEqual(['tenant=acme']);
    expect(shown(policy, 'api_key=two', 'x=1')).toEqual(['tenant=acme', 'x=1']);
    expect(shown(policy, 'x=1', 'api_key=ключ')).toEqual(['x=1', 'tenant=globex']);
  });

  test('an unknown key becomes a separate tenant, always the same one', () => {
    const expected = [`tenant=sha256:${hex('three')}`];
    expect(shown(policy, 'api_key=three')).toEqual(expected);
    expect(shown(policy, 'api_key=three')).toEqual(expected);
    expect(shown(policy, 'api_key=')).toEqual([`tenant=sha256:${hex('')}`]);
  });

  test('the first of several keys applies, and all of them are removed', () => {
    expect(shown(policy, 'api_key=one', 'x=1', 'api_key=bad')).toEqual(['tenant=acme', 'x=1']);
    expect(shown(policy, 'x=1', 'api_key=bad', 'api_key=one', 'api_key=bad', 'y=2')).toEqual([
      'x=1',
      `tenant=sha256:${hex('bad')}`,
      'y=2',
    ]);
  });

  test('a second key cannot be used to get around the limits', () => {
    const limited = policyOf(`
domain: d
derive: [{ entry: tenant, from: [api_key], sha256: {} }]
descriptors:
  - { key: tenant, descriptors: [{ key: method, rate_limit: { unit: second, requests_per_unit: 1 } }] }
`);
    const once = limited.match(entries('api_key=a', 'method=GET'));
    expect(once.rules[0]).toBeDefined();
    expect(limited.match(entries('api_key=a', 'api_key=b', 'method=GET')).keys[0]!).toBe(once.keys[0]!);
  });

  test('a table with thousands of keys, including long ones, finds all of them', () => {
    for (let i = 0; i < 2500; i++)
      expect(shown(policy, `api_key=k${i}`)).toEqual([`tenant=sha256:${hex(`k${i}`)}`]);
    const long = 'x'.repeat(64 * 1024);
    expect(shown(policy, `api_key=${long}`)).toEqual([`tenant=sha256:${hex(long)}`]);
    expect(shown(policy, 'api_key=one')).toEqual(['tenant=acme']);
  });

  test('a request without the entry keeps the same array', () => {
    const given = entries('tenant=acme', 'x=1');
    expect(policy.match(given).entries).toBe(given);
  });

  test('the key is a secret', () => {
    expect([...policy.secretKeys]).toEqual(['api_key']);
  });

  test('an empty table, in all its spellings', () => {
    const empty = policyOf('domain: d\nderive:\n  - entry: t\n    from: [k]\n    sha256:\n');
    expect(shown(empty, 'k=a')).toEqual([`t=sha256:${hex('a')}`]);
  });
});

describe('rules', () => {
  const policy = policyOf(`
domain: d
derive:
  - entry: group
    from: [method, path]
    rules:
      - { method: GET, path: /a, value: get-a }
      - { method: POST, value: post }
      - { path: "/**/x", value: x }
  - entry: class
    from: [group]
    rules:
      - { group: get-a, value: read }
      - { group: x, value: read }
`);

  test('the first matching rule applies, and the new entry replaces the first source', () => {
    expect(shown(policy, 't=1', 'method=GET', 'u=2', 'path=/a')).toEqual(['t=1', 'class=read', 'u=2']);
    expect(shown(policy, 'path=/a/x', 't=1', 'method=GET')).toEqual(['class=read', 't=1']);
    expect(shown(policy, 'method=POST', 'path=/a/x')).toEqual(['group=post']);
  });

  test('the entries stay unchanged if no rule matches or a source is missing', () => {
    expect(shown(policy, 'method=GET', 'path=/b')).toEqual(['method=GET', 'path=/b']);
    expect(shown(policy, 'method=GET')).toEqual(['method=GET']);
    expect(shown(policy, 'path=/a')).toEqual(['path=/a']);
    expect(shown(policy, 'method=get', 'path=/a')).toEqual(['method=get', 'path=/a']);
  });

  test('the first of several entries with a source key applies, and all of them are removed', () => {
    expect(shown(policy, 'method=POST', 'path=/q', 'path=/a', 'method=GET')).toEqual(['group=post']);
  });

  test('a rule without conditions always matches', () => {
    const always = policyOf('domain: d\nderive: [{ entry: e, from: [a], rules: [{ value: v }] }]\n');
    expect(shown(always, 'a=1')).toEqual(['e=v']);
  });

  test('escapes that normal paths cannot contain cause a warning', () => {
    const { problems } = parse(
      'domain: d\nderive: [{ entry: e, from: [p], rules: [{ p: /a%2Db, value: v }] }]\n',
    );
    expect(problems.warnings.map((warning) => warning.message)).toEqual([
      '"%2D" never matches, because paths are decoded before they are matched; write "-"',
    ]);
  });

  test('a node that derive hides causes a warning', () => {
    const { problems } = parse(
      'domain: d\nderive: [{ entry: e, from: [p], sha256: {} }]\ndescriptors: [{ key: a, descriptors: ' +
        '[{ key: p }] }]\n',
    );
    expect(problems.warnings.map((warning) => warning.message)).toEqual([
      'descriptors with the key "p" never match, because "derive" replaces that entry; match the ' +
        'derived entry, or remove these descriptors',
    ]);
  });
});
