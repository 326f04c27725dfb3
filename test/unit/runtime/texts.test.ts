import { expect, test } from '@jest/globals';
import { tokenBucketRate } from '../../../src/limiter/token-bucket.js';
import { describeRate } from '../../../src/policy/describe.js';
import { plural } from '../../../src/runtime/texts.js';

test('a noun is singular only for 1', () => {
  expect([0, 1, 2].map((count) => plural(count, 'rule'))).toEqual(['0 rules', '1 rule', '2 rules']);
  expect(plural(2, 'is', 'are')).toBe('2 are');
});

test('the description of a bucket with one token uses the singular', () => {
  expect(describeRate(tokenBucketRate(1, 1, 3_600_000_000))).toBe('token bucket: 1 token, 1 every 1h');
});
