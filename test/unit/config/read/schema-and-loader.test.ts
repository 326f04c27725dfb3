/** The JSON Schema, which editors use, and the loader agree on policy files. */
import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { parse } from '../../../support/policy/policies.js';
import { schemaErrors } from '../../../support/policy/policy-schema.js';

const A = 'a'.repeat(64);
const root = (fields: string): string => `domain: d\n${fields}\n`;
const node = (fields: string): string => `domain: d\ndescriptors:\n- { ${fields} }\n`;
const limit = (fields: string): string => node(`key: k, rate_limit: { ${fields} }`);
const bucket = (fields: string): string => limit(`token_bucket: { ${fields} }`);
const derive = (item: string): string => `domain: d\nderive:\n- ${item}\n`;

/** Returns whether the loader accepts the text. */
function verdict(text: string): 'good' | 'warned' | 'bad' {
  const { problems, tableFiles } = parse(text);
  if ([problems, ...tableFiles].some(({ errors }) => errors.length > 0)) return 'bad';
  return problems.warnings.length > 0 ? 'warned' : 'good';
}

const problemsOf = (text: string): readonly string[] => parse(text).problems.errors.map(formatProblem);

describe('both accept', () => {
  test.each([
    'domain: d\n',
    'domain: 7\n',
    root('descriptors: []'),
    root('denied_response: { body: "" }'),
    root('denied_response: { body: 5, content_type: text/html; charset=utf-8 }'),
    root('on_unmatched: ignore'),
    node('key: a, on_unmatched: warn'),
    root('phase: grace_period'),
    root('phase:'),
    root('phase: { active: 2024-05-15T00:00:00Z }'),
    root('phase: { grace_period: "2024-05-15 00:00:00.25+02:00", active: 2024-05-15T00:00:00Z }'),
    root('derive: []'),
    node('key: a, rate_limit: ~'),
    node('key: a, value: '),
    node('key: a, value: 404'),
    node('key: 0x1F, value: 9223372036854775807'),
    node('key: a, value: "*", share_threshold: true'),
    node('key: a, metadata: ~'),
    node('key: a, rate_limit: { unlimited: true }, metadata: { a: [1, 2.5, { b: ~ }] }'),
    node(
      'key: a, shadow_mode: true, quota_mode: true, detailed_metric: true, value_to_metric: true, ' +
        'rate_limit: { unlimited: true }',
    ),
    'domain: d\ndescriptors: [{ key: a }, { key: a, value: "*" }, { key: a, value: b, descriptors: [{ key: c }] }]\n',
    limit('unit: day, requests_per_unit: 4294967295, name: 5, replaces: []'),
    limit('unit: MiNuTe, requests_per_unit: 0x1F'),
    limit('unlimited: true, on_store_failure: deny, name: free'),
    bucket('max_tokens: 1, fill_interval: 1h30m'),
    bucket('max_tokens: 4294967295, tokens_per_fill: 4294967295, fill_interval: 1ms'),
    bucket('max_tokens: 5, tokens_per_fill: ~, fill_interval: +1.5s'),
    bucket('max_tokens: 5, fill_interval: 2500µs'),
    'x: &x\n- { key: a }\ndomain: d\n'.replace('x: &x', 'descriptors: &x'),
    'domain: d\ndescriptors:\n- &a { key: a, rate_limit: { unlimited: true } }\n- { <<: *a, key: b }\n',
    derive('{ entry: e, from: [a], sha256: {} }'),
    derive(`{ entry: e, from: [a], sha256: { ${A}: acme, ${'B'.repeat(64)}: 7 } }`),
    derive(
      '{ entry: e, from: [a, b], rules: [{ a: 1.5, value: x }, { b: "/a/**", value: y }, { value: 3 }] }',
    ),
  ])('%j', (text) => {
    expect([verdict(text), problemsOf(text)]).toEqual(['good', []]);
    expect(schemaErrors(text)).toEqual([]);
  });
});

describe('both refuse', () => {
  test.each([
    root('domain:'),
    'phase: active\n',
    'domain: ""\n',
    'domain: [d]\n',
    '- a\n',
    'just text\n',
    root('descriptor: []'),
    root('foo: 1'),
    root('phase: [active]'),
    root('phase: { active: 2024-05-15 }'),
    root('phase: { active: 2024-13-15T00:00:00Z }'),
    root('phase: { monitoring: 2024-05-15T00:00:00Z, active: 2024-05-15T00:00:00Z }'),
    root('response_headers: x-ratelimit'),
    root('denied_response: {}'),
    root('denied_response: { body: b, content_type: "text/html\\r\\nset-cookie: a=b" }'),
    root('denied_response: { body: b, status: 503 }'),
    root('decision_metadata: 1'),
    limit('unit: day, requests_per_unit: 1, decision_metadata: true'),
    root('on_store_failure: { local: 0.5, deny: 0.5 }'),
    root('on_store_failure: [local]'),
    root('on_unmatched: allow'),
    node('key: a, on_unmatched: true'),
    limit('unlimited: true, on_unmatched: ignore'),
    root('descriptors: {}'),
    root('descriptors: [a]'),
    node('value: v'),
    node('key: ""'),
    node('key: [a]'),
    node('key: a, value: 1.10'),
    node('key: a, shadow_mode: maybe'),
    node('key: a, quota_mode: "true"'),
    node('key: a, detailed_metric: 1'),
    node('key: a, value_to_metric: []'),
    node('key: a, rate_limit: 5'),
    node('key: a, rate_limit: [{ unlimited: true }]'),
    node('key: a, token_bucket: {}'),
    node('key: a, rate_limt: {}'),
    limit('unit: "", requests_per_unit: 5'),
    limit('unit: [second], requests_per_unit: 5'),
    limit('unit: second, requests_per_unit: -1'),
    limit('unit: second, requests_per_unit: "5"'),
    limit('unlimited: true, token_bucket: {}'),
    limit('unlimited: 1'),
    limit('unlimited: true, name: [a]'),
    limit('unlimited: true, replaces: [{ name: }]'),
    limit('unlimited: true, replaces: [{}]'),
    limit('unlimited: true, replaces: [a]'),
    limit('unit: second, requests_per_unit: 1, token_bucket: { max_tokens: 1, fill_interval: 1s }'),
    bucket(''),
    bucket('max_tokens: 1'),
    bucket('max_tokens: -1, fill_interval: 1s'),
    bucket('max_tokens: 1, fill_interval: -1s'),
    bucket('max_tokens: 1, fill_interval: 1s, refill: 1'),
    limit('unlimited: true, allow_debt: true'),
    node('key: k, value_regex: a, value_cidr: 10.0.0.0/8'),
    node('key: k, value_cidr: 10.0.0.0/33'),
    node('key: k, value_cidr: localhost'),
    node('key: k, value_regex: []'),
    node('key: k, rate_limits: []'),
    node('key: k, rate_limits: [{ unit: day, requests_per_unit: 1, quota_mode: true }]'),
    node('key: k, rate_limits: [{ unit: day, requests_per_unit: 1, name: "2" }]'),
    node('key: k, rate_limits: [{ unit: day, requests_per_unit: 1, then: ~ }]'),
    derive('{ from: [a], sha256: {} }'),
    derive('{ entry: e, sha256: {} }'),
    derive('{ entry: e, from: [], sha256: {} }'),
    derive('{ entry: e, from: [a, a], rules: [{ value: x }] }'),
    derive('{ entry: e, from: [a, b], sha256: {} }'),
    derive('{ entry: e, from: [a] }'),
    derive('{ entry: e, from: [a], sha256: {}, rules: [] }'),
    derive('{ entry: e, from: [a], rules: [] }'),
    derive('{ entry: e, from: [a], rules: }'),
    derive('{ entry: e, from: [a], rules: [{ a: x }] }'),
    derive('{ entry: e, from: [a], rules: [{ a: [x], value: y }] }'),
    derive('{ entry: e, from: [a], sha_256: {} }'),
    derive('{ entry: e, from: [a], sha256: { my-secret-key: acme } }'),
    derive(`{ entry: e, from: [a], sha256: { ${A}: } }`),
    derive(`{ entry: e, from: [a], sha256: { ${A}: "sha256:x" } }`),
  ])('%j', (text) => {
    expect(verdict(text)).toBe('bad');
    expect(schemaErrors(text)).not.toEqual([]);
  });
});

describe('only the loader refuses errors that a schema cannot express', () => {
  test.each([
    [
      'an order of times',
      root('phase: { grace_period: 2024-05-15T00:00:00Z, active: 2024-05-14T00:00:00Z }'),
    ],
    ['a day that does not exist', root('phase: { active: 2024-02-30T00:00:00Z }')],
    ['two equal items', 'domain: d\ndescriptors: [{ key: a }, { key: a }]\n'],
    ['its own name', limit('unlimited: true, name: a, replaces: [{ name: a }]')],
    ['shorter than a millisecond', bucket('max_tokens: 1, fill_interval: 999us')],
    ['not whole microseconds', bucket('max_tokens: 1, fill_interval: 1000001ns')],
    ['over a century to fill', bucket('max_tokens: 876001, fill_interval: 1h')],
    ['a key that is not a source', derive('{ entry: e, from: [method], rules: [{ path: /x, value: v }] }')],
    ['an invalid path pattern', derive('{ entry: e, from: [a], rules: [{ a: "/{x", value: v }] }')],
    ['a missing file', derive('{ entry: e, from: [a], sha256_file: gone.yaml }')],
    ['an invalid time zone', limit('unit: day, requests_per_unit: 5, calendar: Europe/Bielefeld')],
    ['burst with a window as the default', limit('unit: day, requests_per_unit: 5, burst: 5')],
    [
      'a debt larger than one window',
      limit('unit: day, requests_per_unit: 5, allow_debt: true, max_debt: 6'),
    ],
    ['an invalid pattern', node('key: a, value_regex: "("')],
    ['bits after a prefix', node('key: a, value_cidr: 10.0.0.1/8')],
    ['a number with a decimal point, which JSON ignores', node('key: a, value: 1.0')],
  ])('%s', (_, text) => {
    expect(verdict(text)).toBe('bad');
    expect(schemaErrors(text)).toEqual([]);
  });
});

describe('the schema refuses strings for which the loader only has a warning', () => {
  test.each([
    root('unit: day'),
    root('descriptors:'),
    root('metadata: [a, 1.5]'),
    limit('unlimited: true, shadow_mode: true'),
    limit('unit: second'),
    limit('unlimited: true, unit: unknown'),
    node('key: "a*", share_threshold: true'),
  ])('%j', (text) => {
    expect(verdict(text)).toBe('warned');
    expect(schemaErrors(text)).not.toEqual([]);
  });
});

describe('the schema requires the plain form where the loader accepts older files', () => {
  test.each([
    ['words of YAML 1.1', node('key: a, rate_limit: { unlimited: yes }')],
    ['digits in groups', limit('unit: day, requests_per_unit: 1_000')],
    ['omitted words', root('on_store_failure:')],
    ['omitted limits next to others', limit('unit: day, requests_per_unit: 1, token_bucket: ~')],
  ])('%s', (_, text) => {
    expect(verdict(text)).toBe('good');
    expect(schemaErrors(text)).not.toEqual([]);
  });
});
