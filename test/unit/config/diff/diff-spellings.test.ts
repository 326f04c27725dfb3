/* What acts the same is no change; what only looks so says what it is. */
import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const changesOf = (before: string, after: string) => diffPolicies(setOf(before), setOf(after), NOW);
const linesOf = (before: string, after: string): readonly string[] =>
  changesOf(before, after).map(({ path, effect, text }) => `${path}: ${effect}: ${text}`);

const file = (descriptors: string, top = ''): string => `domain: d\n${top}\ndescriptors: [${descriptors}]\n`;
const limited = (limit: string, more = ''): string => file(`{ key: k, ${more} rate_limit: { ${limit} } }`);
const MINUTE = 'unit: minute, requests_per_unit: 10';

describe('another spelling', () => {
  const item = (fields: string): string => file(`{ key: k, rate_limits: [{ ${fields} }] }`);
  const node = (fields: string): string => limited(MINUTE, fields);
  const top = (fields: string, limit = MINUTE): string =>
    file(`{ key: k, rate_limit: { ${limit} } }`, fields);
  const derived = (from: string): string =>
    top(`derive: [{ entry: k, from: [${from}], rules: [{ a: x, b: y, value: z }, { b: v, value: w }] }]`);

  test.each([
    [
      '60 minutes',
      limited('unit: hour, requests_per_unit: 5'),
      limited('unit: MINUTE, unit_multiplier: 60, requests_per_unit: 5'),
    ],
    [
      '7 days',
      limited('unit: week, requests_per_unit: 5'),
      limited('unit: day, unit_multiplier: 7, requests_per_unit: 5'),
    ],
    [
      'days of UTC',
      limited('unit: day, requests_per_unit: 5'),
      limited('unit: day, requests_per_unit: 5, calendar: Etc/UTC'),
    ],
    [
      'a duration',
      limited('token_bucket: { max_tokens: 9, fill_interval: 60s }'),
      limited('token_bucket: { max_tokens: 9, fill_interval: 1m }'),
    ],
    [
      'tokens and interval, both doubled',
      limited('token_bucket: { max_tokens: 9, fill_interval: 1s }'),
      limited('token_bucket: { max_tokens: 9, tokens_per_fill: 2, fill_interval: 2s }'),
    ],
    [
      'algorithm: token_bucket',
      limited(`${MINUTE}, algorithm: token_bucket`),
      limited('token_bucket: { max_tokens: 10, tokens_per_fill: 1, fill_interval: 6s }'),
    ],
    [
      'algorithm of the file',
      top('algorithm: token_bucket', `${MINUTE}, burst: 20`),
      top('algorithm: token_bucket', `${MINUTE}, algorithm: token_bucket, burst: 20`),
    ],
    [
      'debt of the default depth',
      limited(`${MINUTE}, allow_debt: true`),
      limited(`${MINUTE}, allow_debt: true, max_debt: 10`),
    ],
    [
      'a candidate',
      node('candidate: { unit: hour, requests_per_unit: 5 },'),
      node('candidate: { unit: minute, unit_multiplier: 60, requests_per_unit: 5 },'),
    ],
    ['an active phase', node(''), node('phase: active,')],
    ['a phase that began', node('phase: active,'), node('phase: { active: 2025-01-01T00:00:00Z },')],
    [
      'a phase that ended',
      node('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2024-01-01T00:00:00Z },'),
      node('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2025-01-01T00:00:00Z },'),
    ],
    [
      'a phase that never comes',
      top('phase: { active: 2027-01-01T00:00:00Z }'),
      top('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2027-01-01T00:00:00Z }'),
    ],
    [
      'switches that are off',
      node(''),
      node('shadow_mode: false, quota_mode: no, enforce_percent: 100, detailed_metric: off,'),
    ],
    [
      'what items inherit',
      file(`{ key: k, shadow_mode: true, rate_limits: [{ ${MINUTE} }] }`),
      item(`${MINUTE}, shadow_mode: true`),
    ],
    [
      'the share of the whole limit',
      top('on_store_failure: local'),
      top('on_store_failure: { local: 1.0 }', `${MINUTE}, on_store_failure: { local: 1 }`),
    ],
    [
      'a share of the file',
      top('on_store_failure: { local: 0.25 }'),
      top('on_store_failure: { local: 0.25 }', `${MINUTE}, on_store_failure: { local: 0.250 }`),
    ],
    [
      'on_store_failure of the file',
      top('on_store_failure: deny'),
      top('on_store_failure: deny', `${MINUTE}, on_store_failure: deny`),
    ],
    [
      'headers of the file',
      top('response_headers: [ratelimit]'),
      top('response_headers: [ratelimit]', `${MINUTE}, response_headers: [ratelimit]`),
    ],
    [
      'headers in another order',
      top('response_headers: [ratelimit, retry-after]'),
      top('response_headers: [retry-after, ratelimit]'),
    ],
    [
      'the body of the file',
      top('denied_response: { body: no }'),
      top('denied_response: { body: no }', `${MINUTE}, denied_response: { body: no }`),
    ],
    [
      'a body of nothing',
      top('denied_response: { body: "" }'),
      limited(`${MINUTE}, denied_response: { body: "", content_type: a/b }`),
    ],
    [
      'headers without a limit',
      limited('unlimited: true'),
      limited('unlimited: true, response_headers: [ratelimit]'),
    ],
    [
      'metadata in another order',
      node('metadata: { a: { b: 1, c: 2 }, d: 3 },'),
      node('metadata: { d: 3, a: { c: 2, b: 1 } },'),
    ],
    [
      'replaces twice, in another order',
      limited(`${MINUTE}, replaces: [{ name: a }, { name: b }]`),
      limited(`${MINUTE}, replaces: [{ name: b }, { name: a }, { name: b }]`),
    ],
    ['the sources of derive in another order', derived('a, b'), derived('b, a')],
    [
      'blocks behind the first',
      node('value_cidr: [10.0.0.0/8, 192.0.2.0/24, 2001:db8::/32],'),
      node('value_cidr: [10.0.0.0/8, "2001:0DB8::/32", 192.0.2.0/24],'),
    ],
    ['a list of one', node('value_regex: a+,'), node('value_regex: [a+],')],
  ])('is no change: %s', (_, before, after) => {
    expect(changesOf(before, after)).toEqual([]);
    expect(changesOf(after, before)).toEqual([]);
  });

  test.each([
    ['', 'its statistics go by the first item of the list and begin anew'],
    [
      'share_threshold: true, ',
      'its statistics and the shared bucket go by the first item of the list and begin anew',
    ],
  ])('that begins a list with another item names the node anew: %s', (share, reason) => {
    expect(linesOf(node(`${share}value_regex: [a+, b+],`), node(`${share}value_regex: [b+, a+],`))).toEqual([
      `k~b+,…: changes: value_regex: a+ first becomes b+ first; ${reason}`,
    ]);
  });

  test('of headers is a change where the file says others', () => {
    const own = `${MINUTE}, response_headers: [ratelimit]`;
    expect(
      linesOf(top('response_headers: [retry-after]'), top('response_headers: [retry-after]', own)),
    ).toEqual(["k: changes: response_headers: the domain's becomes ratelimit"]);
    expect(
      linesOf(top('response_headers: [ratelimit]'), top('response_headers: [retry-after]', own)),
    ).toEqual([': changes: response_headers: ratelimit becomes retry-after']);
  });
});
