import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

const NOW = Date.UTC(2026, 0, 1) * 1000;
const limited = (limit: string): string => `domain: d\ndescriptors: [{ key: k, rate_limit: { ${limit} } }]\n`;
const changes = (before: string, after: string): readonly string[] =>
  diffPolicies(setOf(before), setOf(after), NOW).map(({ effect, text }) => `${effect}: ${text}`);

const TEN = 'unit: minute, requests_per_unit: 10';
const held = (hold: string): string => `${TEN}, hold: { ${hold} }`;
/** The descriptions of {@link held}, without and with holds. */
const PLAIN = '10 per minute';
const HELD = '10 per minute, debt up to 10, holds';

describe('a change of holds', () => {
  test.each([
    [
      'concurrency: { max: 5 }',
      'concurrency: { max: 4 }',
      'tightens: concurrency: 5 requests, expires after 1m becomes concurrency: 4 requests, expires after 1m; ' +
        'fewer concurrent requests',
    ],
    [
      'concurrency: { max: 5 }',
      'concurrency: { max: 5, expires_after: 90s }',
      'tightens: concurrency: 5 requests, expires after 1m becomes concurrency: 5 requests, expires after 90s; ' +
        'a request whose end is not reported occupies its slots for longer',
    ],
    [
      'concurrency: { max: 5 }',
      'concurrency: { max: 6, expires_after: 30s }',
      'loosens: concurrency: 5 requests, expires after 1m becomes concurrency: 6 requests, expires after 30s; ' +
        'more concurrent requests, a request whose end is not reported occupies its slots for less time',
    ],
    [
      TEN,
      'concurrency: { max: 5 }',
      `tightens: ${PLAIN} becomes concurrency: 5 requests, expires after 1m; ` +
        'a limit on concurrent requests and a limit over time can each deny what the other allows',
    ],
    [
      'concurrency: { max: 5 }',
      held('amount: 2'),
      `tightens: concurrency: 5 requests, expires after 1m becomes ${HELD} 2 hits, expires after 10m; ` +
        'a limit on concurrent requests and a limit over time can each deny what the other allows',
    ],
    [
      'unlimited: true',
      held('amount: 2'),
      `tightens: unlimited becomes ${HELD} 2 hits, expires after 10m; there was no limit`,
    ],
    [
      held('amount: 2'),
      'unit: minute, requests_per_unit: 0',
      `tightens: ${HELD} 2 hits, expires after 10m becomes 0 per minute; every request is now denied`,
    ],
    [
      TEN,
      held('amount: 2'),
      `tightens: ${PLAIN} becomes ${HELD} 2 hits, expires after 10m; ` +
        'each request now holds an estimate until it ends',
    ],
    [
      `${TEN}, algorithm: token_bucket, hold: { amount: 2 }`,
      `${TEN}, algorithm: token_bucket`,
      'loosens: token bucket (10 tokens, 10 every 1m, debt up to 10, holds 2 hits, expires after 10m) becomes token ' +
        'bucket (10 tokens, 10 every 1m); requests no longer hold an estimate',
    ],
    [
      `${TEN}, algorithm: token_bucket, hold: { from: first_call }`,
      `${TEN}, algorithm: token_bucket`,
      'tightens: token bucket (10 tokens, 10 every 1m, debt up to 10, holds the hits of the first call, expires ' +
        'after 10m) becomes token bucket (10 tokens, 10 every 1m); ' +
        'unused hits are no longer given back when the request ends',
    ],
    [
      held('amount: 2'),
      held('amount: 2, pair: oldest'),
      `tightens: ${HELD} 2 hits, expires after 10m becomes ${HELD} 2 hits, expires after 10m, ends settle the oldest ` +
        'hold; a call with 0 hits now starts a request, instead of only reading the bucket',
    ],
    [
      held('amount: 2, pair: oldest'),
      held('amount: 2'),
      `tightens: ${HELD} 2 hits, expires after 10m, ends settle the oldest hold becomes ${HELD} 2 hits, expires ` +
        'after 10m; a call with hits and without a hold token now starts a request',
    ],
    [
      TEN,
      held('from: first_call'),
      `tightens: ${PLAIN} becomes ${HELD} the hits of the first call, expires after 10m; ` +
        'use above the hits of the first call is now charged when the request ends',
    ],
    [
      held('amount: 2'),
      held('amount: 3'),
      `tightens: ${HELD} 2 hits, expires after 10m becomes ${HELD} 3 hits, expires after 10m; ` +
        'each request holds more hits until it ends',
    ],
    [
      held('amount: 3'),
      held('amount: 2'),
      `loosens: ${HELD} 3 hits, expires after 10m becomes ${HELD} 2 hits, expires after 10m; ` +
        'each request holds fewer hits until it ends',
    ],
    [
      held('amount: 3'),
      held('from: first_call'),
      `tightens: ${HELD} 3 hits, expires after 10m becomes ${HELD} the hits of the first call, expires after 10m; ` +
        'the old and the new estimate can each be larger',
    ],
    [
      held('amount: 3'),
      held('amount: 3, expires_after: 5m'),
      `tightens: ${HELD} 3 hits, expires after 10m becomes ${HELD} 3 hits, expires after 5m; ` +
        'a request that ends after the new time no longer gives back unused hits',
    ],
    [
      held('amount: 3'),
      held('amount: 3, expires_after: 1h'),
      `tightens: ${HELD} 3 hits, expires after 10m becomes ${HELD} 3 hits, expires after 1h; ` +
        'a request that ends before the new time is now charged for use above its hold',
    ],
    [
      held('amount: 3, unknown: free'),
      held('amount: 3'),
      `tightens: ${HELD} 3 hits, expires after 10m, frees an unknown use becomes ${HELD} 3 hits, expires after 10m; ` +
        'a request that ends with an unknown use no longer gives back its hits',
    ],
    [
      held('amount: 3'),
      held('amount: 3, unknown: free'),
      `loosens: ${HELD} 3 hits, expires after 10m becomes ${HELD} 3 hits, expires after 10m, frees an unknown use; ` +
        'a request that ends with an unknown use now gives back its hits',
    ],
    [
      held('amount: 3'),
      `${held('amount: 3')}, max_debt: 0`,
      `loosens: ${HELD} 3 hits, expires after 10m becomes ${PLAIN}, holds 3 hits, expires after 10m; ` +
        'a smaller debt is paid off sooner',
    ],
    [
      `${held('amount: 3')}, max_debt: 4`,
      held('amount: 3'),
      `tightens: ${PLAIN}, debt up to 4, holds 3 hits, expires after 10m becomes ${HELD} 3 hits, expires after 10m; ` +
        'a larger debt takes longer to pay off',
    ],
    [
      `${TEN}, allow_debt: true`,
      held('from: first_call'),
      `tightens: ${PLAIN}, debt up to 10 becomes ${HELD} the hits of the first call, expires after 10m; ` +
        'charges that exceed the remaining hits are now denied, ' +
        'use above the hits of the first call is now charged when the request ends',
    ],
  ])('from %s to %s', (before, after, expected) => {
    expect(changes(limited(before), limited(after))).toEqual([expected]);
  });

  test('has no effect if only the spelling differs', () => {
    const [one, other] = ['concurrency: { max: 5 }', 'concurrency: { max: 5, expires_after: 60000ms }'];
    expect(changes(limited(one), limited(other))).toEqual([]);
    expect(
      changes(limited(held('amount: 2')), limited(`${held('amount: 2, unknown: keep')}, max_debt: 10`)),
    ).toEqual([]);
  });
});
