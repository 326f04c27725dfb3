import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import type { Rate } from '../../../../src/limiter/rate.js';
import { describeRate } from '../../../../src/policy/describe.js';
import { cases } from '../../../support/assert/cases.js';
import { parse, policyOf } from '../../../support/policy/policies.js';

/** Returns a policy with one limit. `fields` are in flow style, and `head` is added above. */
function withLimit(fields: string, head = ''): string {
  return `domain: d\n${head}descriptors:\n  - key: k\n    rate_limit: { ${fields} }\n`;
}

function rateOf(fields: string, head = ''): Rate | undefined {
  return policyOf(withLimit(fields, head)).rules[0]?.rate;
}

function shown(fields: string, head = ''): string {
  return describeRate(rateOf(fields, head));
}

/** Returns the errors without file and path. */
function errorsOf(fields: string, head = ''): readonly string[] {
  const { policy, problems } = parse(withLimit(fields, head));
  expect(policy).toBeUndefined();
  return problems.errors.map((problem) =>
    formatProblem(problem).replace(/^policy\.yaml:\d+:\d+: descriptors\[0\]\.rate_limit\.?/, ''),
  );
}

const BUCKET = 'token_bucket: { max_tokens: 10, tokens_per_fill: 1, fill_interval: 1s }';
const TEN = 'unit: minute, requests_per_unit: 10';

describe('the meaning of a limit', () => {
  test.each(cases`
    ${TEN} => window: 10 per minute
    ${TEN}, unit_multiplier: 1 => window: 10 per minute
    ${TEN}, unit_multiplier: 5 => window: 10 per 5 minutes
    unit: DAY, requests_per_unit: 250, calendar: Europe/Berlin => window: 250 per day of Europe/Berlin
    unit: week, requests_per_unit: 1, calendar: utc => window: 1 per week of UTC
    unit: month, requests_per_unit: 0, calendar: asia/kolkata => window: 0 per month of asia/kolkata
    unit: year, requests_per_unit: 1, calendar: america/NEW_york => window: 1 per year of America/New_York
    ${TEN}, algorithm: fixed_window => window: 10 per minute
    ${TEN}, algorithm: token_bucket => token bucket: 10 tokens, 10 every 1m
    ${TEN}, algorithm: token_bucket, burst: 25 => token bucket: 25 tokens, 10 every 1m
    ${TEN}, algorithm: token_bucket, burst: 3, unit_multiplier: 90 => token bucket: 3 tokens, 10 every 90m
    unit: day, requests_per_unit: 0, algorithm: token_bucket => window: 0 per day
    ${TEN}, allow_debt: true => window: 10 per minute, debt up to 10
    ${TEN}, allow_debt: true, max_debt: 4 => window: 10 per minute, debt up to 4
    ${TEN}, allow_debt: false => window: 10 per minute
    unit: day, requests_per_unit: 9, calendar: UTC, allow_debt: true
      window: 9 per day of UTC, debt up to 9
    ${BUCKET}, allow_debt: yes => token bucket: 10 tokens, 1 every 1s, debt up to 10
    ${BUCKET}, allow_debt: true, max_debt: 5000 => token bucket: 10 tokens, 1 every 1s, debt up to 5000
    ${TEN}, algorithm: token_bucket, burst: 25, allow_debt: true
      token bucket: 25 tokens, 10 every 1m, debt up to 25
    ${TEN}, unit_multiplier: 52560000 => window: 10 per 52560000 minutes
    unit: year, requests_per_unit: 1, unit_multiplier: 100 => window: 1 per 100 years
  `)('%s', (fields, expected) => {
    expect(shown(fields)).toBe(expected);
  });
});

describe('an invalid limit', () => {
  test.each([
    ...cases`
      unit: day, requests_per_unit: 1, calendar: UTC, unit_multiplier: 1
        unit_multiplier: "unit_multiplier" cannot be combined with "calendar", whose windows are always one unit long;
          keep one of the two
      unit: day, requests_per_unit: 1, calendar: Europe/Berln
        calendar: "Europe/Berln" is not a known time zone of the IANA database; did you mean "Europe/Berlin"?
      unit: day, requests_per_unit: 1, calendar: new york
        calendar: "new york" is not a known time zone of the IANA database; did you mean "America/New_York"?
      unit: day, requests_per_unit: 1, calendar: "+02:00"
        calendar: "+02:00" is not a known time zone of the IANA database; write a time zone such as Europe/Berlin or
          UTC
      ${TEN}, burst: 5
        burst: "burst" is the capacity of a token bucket, but this rule is a fixed window; add algorithm:
          token_bucket, or remove "burst"
      unit: day, requests_per_unit: 0, algorithm: token_bucket, burst: 5
        burst: a rule with requests_per_unit: 0 denies every request; remove "burst"
      ${TEN}, algorithm: token_bucket, burst: 0
        burst: "burst" is 0; write a whole number from 1 to 4294967295
      ${BUCKET}, burst: 5
        burst: "burst" cannot be combined with "token_bucket"; write the number as "max_tokens"
      ${BUCKET}, algorithm: token_bucket
        algorithm: "algorithm" cannot be combined with "token_bucket", which already sets the algorithm; keep one of
          the two
      ${BUCKET}, unit_multiplier: 2
        unit_multiplier: "unit_multiplier" cannot be combined with "token_bucket"; keep one of the two
      ${BUCKET}, calendar: UTC
        calendar: "calendar" cannot be combined with "token_bucket"; keep one of the two
      unit: day, requests_per_unit: 1, calendar: UTC, algorithm: token_bucket
        algorithm: a token bucket refills continuously and cannot have a calendar; remove "calendar", or write
          algorithm: fixed_window
      ${TEN}, algorithm: leaky_bucket => algorithm: "leaky_bucket" is not one of fixed_window, token_bucket
      ${TEN}, unit_multiplier: 0
        unit_multiplier: "unit_multiplier" is 0; write a whole number from 1 to 4294967295
      ${TEN}, unit_multiplier: 1.5
        unit_multiplier: "unit_multiplier" is 1.5; write a whole number from 1 to 4294967295
      ${TEN}, unit_multiplier: 52560001
        unit_multiplier: the window is longer than 100 years; lower "unit_multiplier" to at most 52560000
      ${TEN}, max_debt: 5
        max_debt: "max_debt" has no effect without allow_debt: true or "hold"; add one of them, or remove "max_debt"
      ${BUCKET}, allow_debt: false, max_debt: 5
        max_debt: "max_debt" has no effect without allow_debt: true or "hold"; add one of them, or remove "max_debt"
      ${BUCKET}, allow_debt: true, max_debt: 0
        max_debt: "max_debt" is 0; write a whole number from 1 to 4294967295
      ${BUCKET}, allow_debt: 1, max_debt: 3 => allow_debt: "allow_debt" is 1; write true or false
      ${TEN}, allow_debt: true, max_debt: 11
        max_debt: the debt of a window must fit into the next window, so "max_debt" must be at most
          "requests_per_unit" (10); lower "max_debt", or write algorithm: token_bucket
      unit: day, requests_per_unit: 0, allow_debt: true
        allow_debt: a rule with requests_per_unit: 0 denies every request and can never pay a debt; remove
          "allow_debt", or raise "requests_per_unit"
      unit: year, requests_per_unit: 1, algorithm: token_bucket, burst: 101
        : an empty bucket would take more than 100 years to fill; lower "burst", or raise "requests_per_unit"
      unit: year, requests_per_unit: 1, algorithm: token_bucket, burst: 51, allow_debt: true
        allow_debt: a bucket with the maximum debt of 51 would take more than 100 years to fill; lower "max_debt" or
          "burst", or raise "requests_per_unit"
      token_bucket: { max_tokens: 1, fill_interval: 8760h }, allow_debt: true, max_debt: 100
        max_debt: a bucket with the maximum debt of 100 would take more than 100 years to fill; lower "max_debt" or
          the bucket's fill_interval, or raise tokens_per_fill
      requests_per_unit: 5, unit_multiplier: 2
        : "unit" is missing; write one of second, minute, hour, day, week, month, year
      unit_multiplier: 2 => : "unit" is missing; write one of second, minute, hour, day, week, month, year
    `,
    ...['second', 'minute', 'hour'].map((unit): [string, string] => [
      `unit: ${unit}, requests_per_unit: 1, calendar: UTC`,
      `calendar: "calendar" supports days, weeks, months and years, not ${unit}s; choose another ` +
        '"unit", or remove "calendar"',
    ]),
    ...['unit_multiplier: 2', 'calendar: UTC', 'algorithm: token_bucket', 'burst: 2', 'allow_debt: true'].map(
      (field): [string, string] => {
        const key = field.slice(0, field.indexOf(':'));
        return [
          `unlimited: true, ${field}`,
          `${key}: an unlimited rule cannot have "${key}"; remove "${key}" or "unlimited"`,
        ];
      },
    ),
  ])('%s', (fields, expected) => {
    expect(errorsOf(fields)).toEqual([expected]);
  });
});

describe('algorithm of the file', () => {
  const head = 'algorithm: token_bucket\n';

  test('turns every limit without another setting into a token bucket', () => {
    expect(shown(TEN, head)).toBe('token bucket: 10 tokens, 10 every 1m');
    expect(shown(`${TEN}, burst: 30`, head)).toBe('token bucket: 30 tokens, 10 every 1m');
    expect(shown(`${TEN}, algorithm: fixed_window`, head)).toBe('window: 10 per minute');
    expect(shown('unit: day, requests_per_unit: 0', head)).toBe('window: 0 per day');
    expect(shown(BUCKET, head)).toBe('token bucket: 10 tokens, 1 every 1s');
  });

  test('keeps a calendar a window, which has no burst', () => {
    expect(shown('unit: day, requests_per_unit: 5, calendar: UTC', head)).toBe('window: 5 per day of UTC');
    expect(errorsOf('unit: day, requests_per_unit: 5, calendar: UTC, burst: 9', head)).toEqual([
      'burst: "burst" cannot be combined with "calendar", which has no capacity; keep one of the two',
    ]);
  });

  test('applies to limit overrides', () => {
    expect(policyOf(withLimit(TEN)).overrideAlgorithm).toBe('fixed_window');
    expect(policyOf(withLimit(TEN, head)).overrideAlgorithm).toBe('token_bucket');
  });
});
