import { describe, expect, test } from '@jest/globals';
import { MAX_METADATA_DEPTH } from '../../../../src/config/read/read-metadata.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { entries, parse, policyOf } from '../../../support/policy/policies.js';

const ANY = 'rate_limit: { unit: minute, requests_per_unit: 1 }';

function metadataOf(yaml: string): unknown {
  return policyOf(`domain: d\ndescriptors:\n- { key: k, ${ANY}, metadata: ${yaml} }\n`).rules[0]?.metadata;
}

function errorsOf(yaml: string): string[] {
  const { policy, problems } = parse(`domain: d\ndescriptors:\n- key: k\n  ${ANY}\n  metadata: ${yaml}\n`);
  expect(policy).toBeUndefined();
  return problems.errors.map(formatProblem);
}

describe('values', () => {
  test.each<[string, unknown]>([
    ['{ a: text, b: "quoted", c: "" }', { a: 'text', b: 'quoted', c: '' }],
    ['{ a: yes, b: "yes", c: Off, d: y, e: yEs }', { a: true, b: 'yes', c: false, d: true, e: 'yEs' }],
    ['{ a: ~, b: null, c: , d: "null" }', { a: null, b: null, c: null, d: 'null' }],
    ['{ a: 007, b: 0x1F, c: -0b11, d: 0o17, e: 1_000 }', { a: 7, b: 31, c: -3, d: 15, e: 1000 }],
    ['{ a: 1.5, b: 1e3, c: .5, d: 08, e: -1. }', { a: 1.5, b: 1000, c: 0.5, d: 8, e: -1 }],
    [
      '{ a: 2024-05-15, b: 12:30:45, c: 1e999, d: 0x }',
      { a: '2024-05-15', b: '12:30:45', c: '1e999', d: '0x' },
    ],
    ['{ a: 18446744073709551616 }', { a: 2 ** 64 }],
    ['{ a: [1, [x, { b: no }], ~], c: {} }', { a: [1, ['x', { b: false }], null], c: {} }],
    [
      '{ a: { 0x1F: 1, yes: 2, "on": 3, 1.5: 4, 1e21: 5, 0.00001: 6, ~: 7 } }',
      { a: { '31': 1, true: 2, on: 3, '1.5': 4, '1e+21': 5, '1e-05': 6, '<nil>': 7 } },
    ],
    ['{ 0x1F: 1, yes: 2 }', { '0x1F': 1, yes: 2 }],
    ['{ __proto__: { a: 1 } }', JSON.parse('{ "__proto__": { "a": 1 } }')],
    ['{}', undefined],
    ['~', undefined],
  ])('%s', (yaml, value) => {
    expect(metadataOf(yaml)).toEqual(value);
  });

  test('keys of the policy format may be used in it', () => {
    expect(metadataOf('{ domain: x, unknown: [a, b] }')).toEqual({ domain: 'x', unknown: ['a', 'b'] });
  });
});

describe('errors', () => {
  const nested = (levels: number): string => `${'{ a: '.repeat(levels)}1${' }'.repeat(levels)}`;

  test.each([
    [
      '[a]',
      'policy.yaml:5:13: descriptors[0].metadata: "metadata" must be a mapping, not a list; write its keys below it',
    ],
    [
      '{ a: [1, .inf] }',
      'policy.yaml:5:22: descriptors[0].metadata.a[1]: ".inf" cannot be represented in JSON, the format ' +
        'of metadata; write another number, or put it in quotes',
    ],
  ])('%s', (yaml, error) => {
    expect(errorsOf(yaml)).toEqual([error]);
  });

  test('nesting', () => {
    expect(metadataOf(nested(MAX_METADATA_DEPTH))).toBeDefined();
    expect(errorsOf(nested(MAX_METADATA_DEPTH + 1))[0]).toMatch(
      /is nested more than 30 levels deep, which Envoy cannot read; flatten the metadata$/,
    );
  });
});

test('metadata is kept with detailed metrics and values in metrics, and is immutable', () => {
  for (const flag of ['detailed_metric', 'value_to_metric']) {
    const policy = policyOf(
      `domain: d\ndescriptors:\n- { key: k, ${flag}: true, ${ANY}, metadata: { a: { b: [1] } } }\n`,
    );
    const metadata = policy.match(entries('k=v')).rules[0]?.metadata as { a: { b: number[] } };
    expect(metadata).toEqual({ a: { b: [1] } });
    expect(() => metadata.a.b.push(2)).toThrow(TypeError);
    expect(() => Object.assign(metadata.a, { c: 1 })).toThrow(TypeError);
  }
});
