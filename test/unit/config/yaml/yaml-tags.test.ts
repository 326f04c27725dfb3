import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import type { Rule } from '../../../../src/policy/rule.js';
import { parse, policyOf } from '../../../support/policy/policies.js';
import { REFERENCE_SCALARS } from './reference-scalars.js';

const RULE = 'rate_limit: { unit: day, requests_per_unit: 1 }';
const errorsOf = (text: string): string[] => parse(text).problems.errors.map(formatProblem);

/** Returns the rule of a file; undefined if the file is rejected. */
function ruleOf(fields: string): Rule | undefined {
  const text = `domain: d\ndescriptors: [{ key: k, ${fields} }]\n`;
  return errorsOf(text).length > 0 ? undefined : policyOf(text).rules[0];
}

describe('scalars are read as in the reference', () => {
  const rows = REFERENCE_SCALARS.trim()
    .split('\n')
    .map((line) => line.split(' | ') as [string, string, string, string, string]);

  test.each(rows)('%s', (source, value, limit, shadow, metadata) => {
    const read = (cell: string): unknown => (cell === '-' ? undefined : JSON.parse(cell));
    const path = value === '-' ? undefined : read(value) === '' ? 'k' : `k=${read(value)}`;
    expect(ruleOf(`value: ${source}, ${RULE}`)?.path).toBe(path);
    const rate = ruleOf(`rate_limit: { unit: day, requests_per_unit: ${source} }`)?.rate;
    expect(rate?.kind === 'window' ? rate.requestsPerUnit : undefined).toBe(read(limit));
    expect(ruleOf(`shadow_mode: ${source}, ${RULE}`)?.shadowMode).toBe(read(shadow));
    expect(ruleOf(`metadata: { m: ${source} }, ${RULE}`)?.metadata?.['m']).toEqual(read(metadata));
  });
});

describe('tags of keys, lists and mappings', () => {
  test.each(['!!str key: k', '!!str key: !!str k', '! key: k'])('%s', (field) => {
    expect(policyOf(`domain: d\ndescriptors:\n- ${field}\n  ${RULE}\n`).rules[0]?.path).toBe('k');
  });

  test.each([
    ['!!int key: k', /descriptors\[0\].*a value can have no YAML tag except !!str/],
    ['!!binary a2V5: k', /a value can have no YAML tag except !!str/],
    ['!foo key: k', /a value can have no YAML tag except !!str/],
    ['!!merge <<: { key: k }', /a value can have no YAML tag except !!str/],
    ['!!str <<: { key: k }', /unknown key "<<"/],
    ['! <<: { key: k }', /unknown key "<<"/],
    ['"<<": { key: k }', /unknown key "<<"/],
    ['!!int 5: k', /a value can have no YAML tag except !!str/],
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
});

describe('the tag of a value', () => {
  test.each([
    '!!int 5',
    '!!float 5',
    '!!bool true',
    '!!null ~',
    '!!binary aGVsbG8=',
    '!!timestamp 2001-01-01',
    '!foo x',
  ])('%s is reported once with position, field and remedy, and without the value', (source) => {
    expect(errorsOf(`domain: d\ndescriptors:\n- key: k\n  value: ${source}\n  ${RULE}\n`)).toEqual([
      `policy.yaml:4:${11 + source.indexOf(' ')}: descriptors[0].value: a value can have no YAML tag except !!str; ` +
        'remove the tag, and put the value in quotes if it is a text',
    ]);
  });

  test('with a handle of %TAG is a string if it is !!str, and refused otherwise', () => {
    const errorsWith = (directive: string, value: string): readonly string[] =>
      errorsOf(`%TAG ${directive}\n---\ndomain: d\ndescriptors: [{ key: k, value: ${value}, ${RULE} }]\n`);
    expect(errorsWith('!y! tag:yaml.org,2002:', '!y!str 5')).toEqual([]);
    expect(errorsWith('!y! tag:yaml.org,2002:', '!y!binary aGVsbG8=')).toHaveLength(1);
    expect(errorsWith('!! tag:example.org,2002:', '!!str 5')).toHaveLength(1);
  });
});
