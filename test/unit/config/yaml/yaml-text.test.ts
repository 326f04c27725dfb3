import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { entries, parse, policyOf } from '../../../support/policy/policies.js';

const RULE = 'rate_limit: { unit: second, requests_per_unit: 1 }';

describe('scalars keep their text', () => {
  test.each([
    ['"quoted"', 'quoted'],
    ["'it''s'", "it's"],
    ['"a\\tb"', 'a\tb'],
    ['"null"', 'null'],
    ['!!str', ''],
    ['>-\n    two\n    lines', 'two lines'],
  ])('%j', (source, text) => {
    const policy = policyOf(`domain: d\ndescriptors:\n- key: k\n  value: ${source}\n  ${RULE}\n`);
    expect(policy.match([{ key: 'k', value: text }]).rules[0]?.path).toBe(text === '' ? 'k' : `k=${text}`);
  });

  test.each(['null', 'Null', 'NULL', '~', ''])('a value of %j is not a value', (source) => {
    const policy = policyOf(`domain: d\ndescriptors:\n- key: k\n  value: ${source}\n  ${RULE}\n`);
    expect(policy.match(entries('k=anything')).rules[0]?.path).toBe('k');
  });

  test.each([
    ['5', 5],
    ['0', 0],
    ['+5', 5],
    ['0x10', 16],
    ['0b101', 5],
    ['0o17', 15],
    ['017', 15],
    ['1_000', 1000],
    ['4294967295', 4294967295],
  ])('the number %s', (source, value) => {
    const policy = policyOf(
      `domain: d\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: ${source} } }]\n`,
    );
    expect(policy.rules[0]?.rate).toMatchObject({ kind: 'window', unit: 'hour', requestsPerUnit: value });
  });

  test.each(['true', 'True', 'yes', 'YES', 'on', 'y'])('the boolean %s', (source) => {
    const policy = policyOf(`domain: d\ndescriptors: [{ key: k, shadow_mode: ${source}, ${RULE} }]\n`);
    expect(policy.rules[0]?.shadowMode).toBe(true);
  });
});

describe('numbers that are not integers, without quotes', () => {
  // envoyproxy/ratelimit rejects these values, because 1.10 could mean the string "1.10" or the number 1.1.
  test.each(['1e3', '1.0', '08', '.5', '.inf', '-.Inf', '.nan', '9223372036854775808'])('%s', (text) => {
    const { policy, problems } = parse(`domain: d\ndescriptors:\n- key: k\n  value: ${text}\n  ${RULE}\n`);
    expect(policy).toBeUndefined();
    expect(problems.errors.map(formatProblem)).toEqual([
      'policy.yaml:4:10: descriptors[0].value: "value" has an unquoted value, which YAML reads as a ' +
        'number; put the value in quotes',
    ]);
    policyOf(`domain: d\ndescriptors:\n- key: k\n  value: "${text}"\n  ${RULE}\n`);
  });
});

describe('structure', () => {
  test('a byte order mark, comments, directives and a document marker', () => {
    expect(policyOf('\ufeff# c\ndomain: d\n').domain).toBe('d');
    expect(policyOf('%YAML 1.1\n---\n# c\ndomain: yes\n').domain).toBe('yes');
  });

  test('JSON is YAML', () => {
    const policy = policyOf('{"domain":"d","descriptors":[{"key":"k","rate_limit":{"unlimited":true}}]}');
    expect(policy.match(entries('k=v')).rules[0]?.rate).toBeUndefined();
    expect(policy.match(entries('k=v')).rules[0]).toBeDefined();
  });

  test('anchors, aliases and merge keys; own keys override, then the first source', () => {
    const policy = policyOf(`
domain: d
descriptors:
  - key: a
    rate_limit: &slow { unit: hour, requests_per_unit: 1 }
  - key: b
    rate_limit: *slow
  - key: c
    rate_limit: { <<: *slow, requests_per_unit: 2 }
  - key: e
    rate_limit:
      <<: [*slow, { unit: day, name: merged }]
`);
    expect(policy.rules.map((rule) => [rule.path, rule.name, rule.rate])).toEqual([
      ['a', '', expect.objectContaining({ unit: 'hour', requestsPerUnit: 1 })],
      ['b', '', expect.objectContaining({ unit: 'hour', requestsPerUnit: 1 })],
      ['c', '', expect.objectContaining({ unit: 'hour', requestsPerUnit: 2 })],
      ['e', 'merged', expect.objectContaining({ unit: 'hour', requestsPerUnit: 1 })],
    ]);
  });

  test('an anchor may be set again', () => {
    const policy = policyOf(`
domain: d
descriptors:
  - { key: a, rate_limit: &r { unit: hour, requests_per_unit: 1 } }
  - { key: b, rate_limit: &r { unit: day, requests_per_unit: 2 } }
  - { key: c, rate_limit: *r }
`);
    expect(policy.rules[2]?.rate).toMatchObject({ unit: 'day', requestsPerUnit: 2 });
  });
});
