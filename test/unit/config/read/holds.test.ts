import { describe, expect, test } from '@jest/globals';
import { formatProblem, ProblemList } from '../../../../src/config/yaml/config-problem.js';
import { parseYaml, type YamlValue } from '../../../../src/config/yaml/yaml-document.js';
import { describeLimit } from '../../../../src/policy/describe.js';
import { cases } from '../../../support/assert/cases.js';
import { loadDocuments } from '../../../support/policy/loads.js';
import { parse, policyOf } from '../../../support/policy/policies.js';

const PLACES: readonly (readonly [name: string, place: string, policy: (fields: string) => string])[] = [
  ['rate_limit', 'rate_limit', (fields) => `rate_limit: { ${fields} }`],
  ['an item of rate_limits', 'rate_limits[0]', (fields) => `rate_limits: [{ ${fields} }]`],
];
const inFile = (limit: string): string => `domain: d\ndescriptors:\n  - key: k\n    ${limit}\n`;

const BUCKET = 'token_bucket: { max_tokens: 100, fill_interval: 1s }';
const WINDOW = 'unit: minute, requests_per_unit: 100';

describe.each(PLACES)('in %s', (_name, place, policy) => {
  test.each(cases`
    concurrency: { max: 10 } => concurrency: 10 requests, expires after 1m
    concurrency: { max: 1, expires_after: 1ms } => concurrency: 1 request, expires after 1ms
    concurrency: { max: 9, retry_after: 1m30s }
      concurrency: 9 requests, expires after 1m, retry after 90s
    concurrency: { max: 4294967295, expires_after: 168h }
      concurrency: 4294967295 requests, expires after 168h
    ${BUCKET}, hold: { amount: 100 }
      token bucket: 100 tokens, 1 every 1s, debt up to 100, holds 100 hits, expires after 10m
    ${BUCKET}, hold: { from: first_call, expires_after: 90s }, max_debt: 5000
      token bucket: 100 tokens, 1 every 1s, debt up to 5000, holds the hits of the first call, expires after 90s
    ${WINDOW}, hold: { amount: 1, expires_after: 1.5s, unknown: free }, max_debt: 0
      window: 100 per minute, holds 1 hit, expires after 1500ms, frees an unknown use
    ${WINDOW}, hold: { amount: 5, unknown: keep }, max_debt: 100
      window: 100 per minute, debt up to 100, holds 5 hits, expires after 10m
    ${WINDOW}, hold: { amount: 5, pair: oldest }
      window: 100 per minute, debt up to 100, holds 5 hits, expires after 10m, ends settle the oldest hold
    ${WINDOW}, hold: { amount: 5, unknown: free, pair: token }, max_debt: 0
      window: 100 per minute, holds 5 hits, expires after 10m, frees an unknown use
    ${WINDOW}, algorithm: token_bucket, burst: 300, hold: { amount: 200 }
      token bucket: 300 tokens, 100 every 1m, debt up to 300, holds 200 hits, expires after 10m
  `)('%s is valid', (fields, expected) => {
    const { rules } = policyOf(inFile(policy(fields)));
    expect(describeLimit(rules.at(-1)!)).toBe(expected);
  });

  test.each([
    ...cases`
      concurrency: { expires_after: 5s }
        concurrency: "max" is missing; write the maximum number of concurrent requests, such as 10
      concurrency: { max: 0 }
        concurrency.max: "max" is 0; write a whole number from 1 to 4294967295, or write requests_per_unit: 0 to deny
          every request
      concurrency: 10
        concurrency: "concurrency" must be a mapping, not a single value; write its keys below it
      concurrency: { max: 4, limit: 5 }
        concurrency.limit: unknown key "limit"; the keys allowed here are max, expires_after, retry_after
      concurrency: { max: 4, expires_after: 60 }
        concurrency.expires_after: "60" is not a valid duration; write a number and a unit, such as 150ms, 1s
          or 1h30m
      concurrency: { max: 4, expires_after: 999us }
        concurrency.expires_after: "expires_after" is 999us; write a duration from 1ms to 168h
      concurrency: { max: 4, expires_after: 1.0001s }
        concurrency.expires_after: "expires_after" is 1.0001s; write a whole number of milliseconds
      concurrency: { max: 4, expires_after: 168h1ms }
        concurrency.expires_after: "expires_after" is 168h1ms; write a duration from 1ms to 168h
      ${BUCKET}, hold: {}
        hold: "amount" is missing; write the number of hits that each request holds, such as 5000, or replace "amount"
          with from: first_call
      ${BUCKET}, hold: { amount: 2, from: first_call }
        hold.from: "from" cannot be combined with "amount"; keep one of the two
      ${BUCKET}, hold: { from: last_call } => hold.from: "last_call" is not a valid value; write first_call
      ${BUCKET}, hold: { amount: 0 } => hold.amount: "amount" is 0; write a whole number from 1 to 4294967295
      ${BUCKET}, hold: { amount: 101 }
        hold.amount: "amount" is 101, but the limit never allows more than 100 hits, so it would deny every request;
          lower "amount" to at most 100, or raise the limit
      concurrency: { max: 4, pair: oldest }
        concurrency.pair: a limit on concurrent requests needs hold tokens, because each lost end would otherwise
          occupy a slot permanently; remove "pair", and let Envoy send the hold token
      ${BUCKET}, hold: { amount: 2, pair: newest } => hold.pair: "newest" is not one of token, oldest
      ${BUCKET}, hold: { from: first_call, pair: oldest }
        hold.from: "from" cannot be combined with pair: oldest, because a start then has 0 hits; write "amount"
          instead
      ${BUCKET}, hold: { amount: 2, unknown: free, pair: oldest }
        hold.unknown: "unknown" cannot be free with pair: oldest, because an end always has a use; remove "unknown",
          or remove "pair" and let Envoy send the hold token
      ${BUCKET}, hold: { amount: 2, unknown: lose } => hold.unknown: "lose" is not one of keep, free
      ${BUCKET}, hold: { amount: 2, expires_after: 1d }
        hold.expires_after: "1d" is not a valid duration; write a number and a unit, such as 150ms, 1s
          or 1h30m
      unit: minut, hold: { amount: 1 } => unit: "minut" is not a valid unit; did you mean "minute"?
      ${BUCKET}, hold: { amount: 2, expires_after: 8d }
        hold.expires_after: "8d" is not a valid duration; write a number and a unit, such as 150ms, 1s
          or 1h30m
      ${BUCKET}, hold: 5 => hold: "hold" must be a mapping, not a single value; write its keys below it
      ${BUCKET}, hold: { amount: 2 }, allow_debt: true
        allow_debt: "allow_debt" cannot be combined with "hold", whose settlements can always leave debt, up to
          "max_debt"; keep one of the two
      ${WINDOW}, hold: { amount: 2 }, max_debt: 101
        max_debt: the debt of a window must fit into the next window, so "max_debt" must be at most
          "requests_per_unit" (100); lower "max_debt", or write algorithm: token_bucket
      unit: day, requests_per_unit: 0, hold: { amount: 1 }
        hold: a rule with requests_per_unit: 0 denies every request, so no request can hold anything; remove "hold",
          or raise "requests_per_unit"
      token_bucket: { max_tokens: 60, fill_interval: 8760h }, hold: { amount: 1 }
        hold: a bucket with the maximum debt of 60 would take more than 100 years to fill; lower "max_debt" or the
          bucket's fill_interval, or raise tokens_per_fill
    `,
    ...[BUCKET, 'unit: day', 'requests_per_unit: 1'].map((field): [string, string] => {
      const key = field.slice(0, field.indexOf(':'));
      return [
        `concurrency: { max: 4 }, ${field}`,
        `${key}: "${key}" cannot be combined with "concurrency"; keep one of the two`,
      ];
    }),
    ...[
      'unit_multiplier: 2',
      'calendar: UTC',
      'algorithm: token_bucket',
      'burst: 2',
      'allow_debt: false',
      'max_debt: 0',
      'hold: { amount: 1 }',
    ].map((field): [string, string] => {
      const key = field.slice(0, field.indexOf(':'));
      return [
        `concurrency: { max: 4 }, ${field}`,
        `${key}: "${key}" cannot be combined with "concurrency"; keep one of the two`,
      ];
    }),
    ...['0s', '1500ms', '169h'].map((time): [string, string] => [
      `concurrency: { max: 4, retry_after: ${time} }`,
      `concurrency.retry_after: "retry_after" is ${time}; write ` +
        (time === '1500ms' ? 'a whole number of seconds' : 'a duration from 1s to 168h'),
    ]),
  ])('%s is an error', (fields, expected) => {
    const { policy: read, problems } = parse(inFile(policy(fields)));
    expect(read).toBeUndefined();
    const errors = problems.errors.map(formatProblem);
    expect(errors.map((text) => text.replace(/^policy\.yaml:\d+:\d+: descriptors\[0\]\./, ''))).toEqual([
      `${place}.${expected}`,
    ]);
  });
});

test.each(['concurrency: { max: 4 }', 'hold: { amount: 1 }'])('an unlimited rule cannot have %s', (field) => {
  const key = field.slice(0, field.indexOf(':'));
  const { problems } = parse(inFile(`rate_limit: { unlimited: true, ${field} }`));
  expect(problems.errors.map(({ message }) => message)).toEqual([
    `an unlimited rule cannot have "${key}"; remove "${key}" or "unlimited"`,
  ]);
});

test.each(['concurrency', 'hold'])('%s belongs in "rate_limit"', (key) => {
  const { problems } = parse(inFile(`rate_limit: { ${WINDOW} }\n    ${key}: { max: 1 }`));
  expect(problems.errors.map(({ message }) => message)).toEqual([
    `unknown key "${key}"; it belongs in "rate_limit"`,
  ]);
});

test('a list cannot have concurrency next to pair: oldest', () => {
  const oldest = `{ ${WINDOW}, hold: { amount: 5, pair: oldest } }`;
  const token = oldest.replace(', pair: oldest', '');
  const slots = '{ name: parallel, concurrency: { max: 4 } }';
  const messages = (limits: string): readonly string[] =>
    parse(inFile(limits)).problems.errors.map(formatProblem);
  expect(messages(`rate_limits: [${slots}, ${oldest}]`)).toEqual([
    expect.stringMatching(
      /^policy\.yaml:\d+:\d+: descriptors\[0\]\.rate_limits: pair: oldest cannot be combined with "concurrency" /,
    ),
  ]);
  expect(messages(`rate_limits: [${slots}, ${token}]`)).toEqual([]);
});

test('an empty hold is ignored with a warning', () => {
  const { policy, problems } = parse(inFile(`rate_limit: { ${WINDOW}, hold: }`));
  expect(policy?.rules.map(({ hold }) => hold)).toEqual([undefined]);
  expect(problems.warnings.map(({ message }) => message)).toEqual([
    '"hold" is empty and is ignored; write a value after it, or remove the key',
  ]);
});

test('a limit that is only a hold has one error', () => {
  const { problems } = parse(inFile('rate_limit: { hold: { amount: 1 } }'));
  expect(problems.errors.map(({ message }) => message)).toEqual([
    '"rate_limit" is empty; write token_bucket, or unit and requests_per_unit, or concurrency, or unlimited: true',
  ]);
});

describe('a rule with holds', () => {
  const ruleOf = (fields: string) => policyOf(inFile(`rate_limit: { ${fields} }`)).rules[0]!;

  test('has no charges, because only settlements leave debt', () => {
    for (const limit of [BUCKET, WINDOW]) {
      const { rate } = ruleOf(`${limit}, hold: { amount: 5 }`);
      expect([rate?.maxDebt, rate?.minChargeHits]).toEqual([100, Infinity]);
    }
  });

  test.each(['hold: { amount: 5 }', 'hold: { from: first_call }, max_debt: 0'])(
    'with a window never counts denied hits: %s',
    (hold) => {
      const { rate } = ruleOf(`${WINDOW}, ${hold}`);
      expect(rate?.countsDenied(true)).toBe(false);
      expect(ruleOf(WINDOW).rate?.countsDenied(true)).toBe(true);
    },
  );

  test('keeps its bucket when the maximum or the expiry changes, and gets another one for another kind', () => {
    const keyOf = (fields: string): string | undefined =>
      policyOf(inFile(`rate_limit: { ${fields} }`)).match([{ key: 'k', value: 'v' }]).keys[0];
    const slots = keyOf('concurrency: { max: 5 }');
    expect(keyOf('concurrency: { max: 6, expires_after: 2s }')).toBe(slots);
    expect(slots).not.toBe(keyOf(BUCKET));
    expect(slots).not.toBe(keyOf(WINDOW));
    for (const limit of [BUCKET, WINDOW]) {
      expect(keyOf(`${limit}, hold: { amount: 5 }`)).toBe(keyOf(limit));
      expect(keyOf(`${limit}, hold: { amount: 6, unknown: free }`)).toBe(keyOf(limit));
    }
  });
});

describe('the entry that ends holds', () => {
  const nodes = (limit: string): string =>
    inFile(`rate_limit: { ${limit} }\n    descriptors: [{ key: hold }, { key: lease }]`);
  const refused = (policy: string, holdEntry?: string): readonly string[] =>
    loadDocuments(
      [{ name: 'r', document: parseYaml(Buffer.from(policy), new ProblemList('r')) as YamlValue }],
      {
        ...(holdEntry !== undefined && { holdEntry }),
      },
    ).errors.map(formatProblem);

  test.each(['concurrency: { max: 4 }', `${WINDOW}, hold: { amount: 1 }`])(
    'is no key of a domain with %s',
    (limit) => {
      const error = (at: string, key: string): string =>
        `r:${at}.key: the entry "${key}" ends requests in a domain with holds, so this descriptor never matches; ` +
        'rename the key, or set HOLD_ENTRY to another key';
      expect(refused(nodes(limit))).toEqual([error('5:26: descriptors[0].descriptors[0]', 'hold')]);
      expect(refused(nodes(limit), 'lease')).toEqual([error('5:41: descriptors[0].descriptors[1]', 'lease')]);
      expect(refused(nodes(limit), 'other')).toEqual([]);
    },
  );

  test('is a key like any other in a domain without holds', () => {
    expect(refused(nodes(WINDOW))).toEqual([]);
  });
});
