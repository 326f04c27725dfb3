/* Policies that envoyproxy/ratelimit rejects, according to its config_impl.go. */
import { expect, test } from '@jest/globals';
import { openFile } from '../../../../src/config/read/policy-source.js';
import { judgeByReference } from '../../../../src/migrate/read/reference-verdicts.js';

function judge(texts: readonly string[], merges = false): readonly string[] {
  const parts = texts.map((text, i) => ({ name: `${i}`, opened: openFile(`${i}`, Buffer.from(text)) }));
  const { rejected, accepted } = judgeByReference(parts, merges, () => true);
  return texts.map((_, i) => (rejected.has(`${i}`) ? 'refused' : accepted.has(`${i}`) ? 'taken' : 'unknown'));
}

const LIMIT = 'rate_limit: { unit: second, requests_per_unit: 1 }';
const of = (descriptors: string, domain = 'a'): string =>
  `domain: ${domain}\ndescriptors: [${descriptors}]\n`;

test.each([
  of(`{ key: k, ${LIMIT} }`),
  of('{ key: k, rate_limit: { unit: MINUTE, requests_per_unit: 4294967295 }, shadow_mode: yes }'),
  of('{ key: k, rate_limit: { unlimited: true, unit: fortnight } }'),
  of('{ key: k, rate_limit: { unit: second, replaces: [{ name: b }], name: a } }'),
  of('{ key: k, metadata: { any: [1] }, rate_limit: }'),
  of(`{ key: k, ${LIMIT}, descriptors: [{ key: k, ${LIMIT} }] }, { key: k, value: v }`),
  'domain: a\ndescriptors:\n',
])('%s is accepted', (text) => expect(judge([text])).toEqual(['taken']));

test.each([
  'descriptors: []',
  'domain: [',
  'these are our limits',
  'name: other\nversion: 1\n',
  of(`{ value: v, ${LIMIT} }`),
  of('{ key: k, rate_limit: { unit: fortnight, requests_per_unit: 1 } }'),
  of('{ key: k, rate_limit: { requests_per_unit: 1 } }'),
  of('{ key: k, rate_limit: { unit: second, requests_per_unit: -1 } }'),
  of('{ key: k, rate_limit: { unit: second, requests_per_unit: 4294967296 } }'),
  of('{ key: k, rate_limit: { unit: second, requests_per_unit: "1" } }'),
  of('{ key: k, rate_limit: { unlimited: true, unit: second } }'),
  of('{ key: k, rate_limit: { unit: second, replaces: [{ name: a }], name: a } }'),
  of('{ key: k, shadow_mode: perhaps }'),
  of('{ key: k, token_bucket: { size: 1 } }'),
  of(`{ key: a_b, ${LIMIT} }, { key: a, value: b, ${LIMIT} }`),
  of('{ key: k, descriptors: [{ key: l }, { key: l }] }'),
])('%s is refused', (text) => expect(judge([text])).toEqual(['refused']));

test('a domain may occur twice only if files are merged, and only with different descriptors', () => {
  const texts = [of('{ key: k }'), of('{ key: l }'), of('{ key: k }'), of('{ key: k }', 'b')];
  expect(judge(texts)).toEqual(['taken', 'refused', 'refused', 'taken']);
  expect(judge(texts, true)).toEqual(['taken', 'taken', 'refused', 'taken']);
});
