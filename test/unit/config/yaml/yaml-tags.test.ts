import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import type { Rule } from '../../../../src/policy/rule.js';
import { parse, policyOf } from '../../../support/policy/policies.js';
import { REFERENCE_TAGS } from './reference-tags.js';

const RULE = 'rate_limit: { unit: day, requests_per_unit: 1 }';
const errorsOf = (text: string): string[] => parse(text).problems.errors.map(formatProblem);

/** Returns the rule of a file; undefined if the file is rejected. */
function ruleOf(fields: string): Rule | undefined {
  const text = `domain: d\ndescriptors: [{ key: k, ${fields} }]\n`;
  return errorsOf(text).length > 0 ? undefined : policyOf(text).rules[0];
}

/**
 * Scalars whose metadata differ, because weir accepts only JSON values. Bytes that are not UTF-8 are a warning there,
 * too.
 */
const OTHER_METADATA = ['!!float .inf', '!!binary true', '!!binary null'];

describe('explicit tags are read as in the reference', () => {
  const rows = REFERENCE_TAGS.trim()
    .split('\n')
    .map((line) => line.split(' | ') as [string, string, string, string, string]);

  test.each(rows)('%s', (source, value, limit, shadow, metadata) => {
    const read = (cell: string): unknown => (cell === '-' ? undefined : JSON.parse(cell));
    const path = value === '-' ? undefined : read(value) === '' ? 'k' : `k=${read(value)}`;
    expect(ruleOf(`value: ${source}, ${RULE}`)?.path).toBe(path);
    const rate = ruleOf(`rate_limit: { unit: day, requests_per_unit: ${source} }`)?.rate;
    expect(rate?.kind === 'window' ? rate.requestsPerUnit : undefined).toBe(read(limit));
    expect(ruleOf(`shadow_mode: ${source}, ${RULE}`)?.shadowMode).toBe(read(shadow));
    if (OTHER_METADATA.includes(source)) return;
    expect(ruleOf(`metadata: { m: ${source} }, ${RULE}`)?.metadata?.['m']).toEqual(read(metadata));
  });
});

describe('tags of keys, lists and mappings', () => {
  test.each([
    '!!binary a2V5: k',
    '!!str key: k',
    '!foo key: k',
    '!!merge <<: { key: k }',
    '! <<: { key: k }',
    '!!str key: !!str k',
  ])('%s', (field) => {
    expect(policyOf(`domain: d\ndescriptors:\n- ${field}\n  ${RULE}\n`).rules[0]?.path).toBe('k');
  });

  test.each([
    ['!!int key: k', /the value has the tag !!int and is not a whole number/],
    ['!!str <<: { key: k }', /unknown key "<<"/],
    ['"<<": { key: k }', /unknown key "<<"/],
    ['!!merge x: { key: k }', /unknown key "x"/],
    ['!!int 5: k', /unknown key "5"/],
  ])('%s is refused', (field, message) => {
    expect(errorsOf(`domain: d\ndescriptors:\n- ${field}\n  ${RULE}\n`)[0]).toMatch(message);
  });

  // The reference, too, only checks the tags of scalars.
  test.each([
    '!!seq [{ key: k',
    '!!map [{ key: k',
    '!!str [{ key: k',
    '!foo [!bar { key: k',
    '!!null [{ key: k',
    '[!!seq { key: k',
    '[!!binary { key: k',
    '[!!set { key: k',
    '!!omap [{ key: k',
  ])('descriptors: %s', (list) => {
    expect(policyOf(`domain: d\ndescriptors: ${list}, ${RULE} }]\n`).rules[0]?.path).toBe('k');
  });

  test('handles of %TAG are read, and unknown core tags are strings', () => {
    const of = (directive: string, value: string): string | undefined =>
      policyOf(`%TAG ${directive}\n---\ndomain: d\ndescriptors: [{ key: k, value: ${value}, ${RULE} }]\n`)
        .rules[0]?.path;
    expect(of('!y! tag:yaml.org,2002:', '!y!binary aGVsbG8=')).toBe('k=hello');
    expect(of('!! tag:example.org,2002:', '!!binary aGVsbG8=')).toBe('k=aGVsbG8=');
  });
});

describe('a value that does not match its tag', () => {
  test('is reported once with position, field and remedy, and without the value', () => {
    expect(
      errorsOf(
        'domain: d\ndescriptors:\n- key: k\n  value: !!int many\n' +
          '  rate_limit:\n    unit: day\n    requests_per_unit: !!binary "5"\n',
      ),
    ).toEqual([
      'policy.yaml:4:16: descriptors[0].value: the value has the tag !!int and is not a whole number; correct the ' +
        'value, or remove the tag',
      'policy.yaml:7:33: descriptors[0].rate_limit.requests_per_unit: the value has the tag !!binary and is not ' +
        'base64; correct the value, or remove the tag',
    ]);
  });

  test('a number for a string is reported with the tag', () => {
    expect(errorsOf('domain: !!float 3\n')).toEqual([
      'policy.yaml:1:17: domain: "domain" has the tag !!float, so YAML reads its value as a number; ' +
        'remove the tag, and put the value in quotes',
    ]);
  });

  test('bytes that are not UTF-8 load with a warning, and match requests with such bytes', () => {
    const text = `domain: d\ndescriptors: [{ key: k, value: !!binary /w==, ${RULE} }]\n`;
    expect(policyOf(text).match([{ key: 'k', value: '\ufffd' }]).rules).toHaveLength(1);
    expect(parse(text).problems.warnings.map(formatProblem)).toEqual([
      expect.stringMatching(/^policy.yaml:2:41: descriptors\[0\].value: this !!binary value is not UTF-8/),
    ]);
  });
});
