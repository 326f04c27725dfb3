import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { cases } from '../../../support/assert/cases.js';
import { setOf } from '../../../support/policy/policies.js';

const NOW = Date.UTC(2026, 0, 1) * 1000;
const limited = (limit: string): string => `domain: d\ndescriptors: [{ key: k, rate_limit: { ${limit} } }]\n`;
const changes = (before: string, after: string): readonly string[] =>
  diffPolicies(setOf(before), setOf(after), NOW).map(({ effect, text }) => `${effect}: ${text}`);

const TEN = 'unit: minute, requests_per_unit: 10';
const held = (hold: string): string => `${TEN}, hold: { ${hold} }`;
const HELD = '10 per minute, debt up to 10, holds';

describe('a change of holds', () => {
  test.each(cases`
    concurrency: { max: 5 }
      concurrency: { max: 4 }
      tightens: concurrency: 5 requests, expires after 1m becomes concurrency: 4 requests, expires after 1m; fewer
        concurrent requests
    concurrency: { max: 4 }
      concurrency: { max: 5, retry_after: 2s }
      loosens: concurrency: 4 requests, expires after 1m becomes concurrency: 5 requests, expires after 1m, retry
        after 2s; more concurrent requests
    concurrency: { max: 5 }
      concurrency: { max: 5, retry_after: 2s }
      changes: concurrency: 5 requests, expires after 1m becomes concurrency: 5 requests, expires after 1m, retry
        after 2s
    unlimited: true
      ${held('amount: 2')}
      tightens: unlimited becomes ${HELD} 2 hits, expires after 10m; there was no limit
    ${held('amount: 2')}
      unit: minute, requests_per_unit: 0
      tightens: ${HELD} 2 hits, expires after 10m becomes 0 per minute; every request is now denied
    ${held('amount: 2')}, max_debt: 3
      ${`${held('amount: 2')}, max_debt: 3`.replace('10,', '20,')}
      loosens: 10 per minute, debt up to 3, holds 2 hits, expires after 10m becomes 20 per minute, debt up to 3,
        holds 2 hits, expires after 10m; more hits per window
  `)('from %s to %s', (before, after, expected) => {
    expect(changes(limited(before), limited(after))).toEqual([expected]);
  });

  test.each([
    ['concurrency: { max: 5 }', 'concurrency: { max: 5, expires_after: 90s }'],
    [TEN, 'concurrency: { max: 5 }'],
    [TEN, held('amount: 2')],
    [held('amount: 2'), held('amount: 2, pair: oldest')],
    [TEN, held('from: first_call')],
    [held('amount: 2'), held('amount: 3')],
    [held('amount: 3'), held('amount: 3, expires_after: 5m')],
    [held('amount: 3, unknown: free'), held('amount: 3')],
    [held('amount: 3'), `${held('amount: 3')}, max_debt: 0`],
    [`${TEN}, allow_debt: true`, held('from: first_call')],
  ])('cannot be compared, so %s and %s each tighten the other', (one, other) => {
    const text = /^tightens: .*; the two limits cannot be compared$/;
    expect(changes(limited(one), limited(other))).toEqual([expect.stringMatching(text)]);
    expect(changes(limited(other), limited(one))).toEqual([expect.stringMatching(text)]);
  });

  test('has no effect if only the spelling differs', () => {
    const [one, other] = ['concurrency: { max: 5 }', 'concurrency: { max: 5, expires_after: 60000ms }'];
    expect(changes(limited(one), limited(other))).toEqual([]);
    expect(
      changes(limited(held('amount: 2')), limited(`${held('amount: 2, unknown: keep')}, max_debt: 10`)),
    ).toEqual([]);
  });
});
