import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../src/config/diff/diff-policies.js';
import { explain } from '../../../src/config/show/explain.js';
import { renderExplanation } from '../../../src/config/show/explain-text.js';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { rateOf, rateSpecOf } from '../../../src/policy/plans/plan-rate.js';
import type { Rule } from '../../../src/policy/rule.js';
import { parsePolicy } from '../../support/policy/parse-policy.js';
import { entries, parse, policyOf, setOf } from '../../support/policy/policies.js';

const NOW = Date.parse('2026-01-01T00:00:00Z') * 1000;
/** 100 tokens a second. */
const BUCKET = 'algorithm: token_bucket, unit: second, requests_per_unit: 100';
const LEASE = 'lease: { for: 50ms }';
const limited = (limit: string, file = ''): string =>
  `domain: d\n${file}\ndescriptors: [{ key: tenant, descriptors: [{ key: class, rate_limit: { ${limit} } }] }]\n`;

const ruleOf = (text: string): Rule => policyOf(text).rules[0] as Rule;

/** Returns the limit, and the terms of its leases. */
function leaseOf({ rate }: Rule): unknown {
  return [rate?.reportedLimit, rate?.lease];
}

const explained = (text: string): string =>
  renderExplanation(explain(setOf(text), 'd', entries('tenant=a', 'class=b')), NOW);

describe('the limit of a rule with leases', () => {
  test.each([
    ['a token bucket leaves out what refills during a lease', `${BUCKET}, ${LEASE}`, 95],
    ['a fraction of a token rounds up', `${BUCKET}, lease: { for: 51ms }`, 94],
    ['exact: false keeps the capacity', `${BUCKET}, lease: { for: 50ms, exact: false }`, 100],
    ['a window keeps its limit', `unit: minute, requests_per_unit: 100, ${LEASE}`, 100],
    ['4 tokens may remain', 'token_bucket: { max_tokens: 5, fill_interval: 1h }, lease: { for: 5ms }', 4],
    ['half of the capacity may refill', `${BUCKET}, lease: { for: 500ms }`, 50],
  ])('%s', (_, limit, expected) => {
    const rule = ruleOf(limited(limit));
    expect(rule.rate?.reportedLimit).toBe(expected);
    expect(rule.rate?.lease).toEqual({ forMicros: rule.lease?.forMicros, max: 1000 });
  });

  test('comes from the rule, else from the file, else from the environment', () => {
    const file = 'lease: { for: 20ms, max: 9 }';
    expect(leaseOf(ruleOf(limited(BUCKET, file)))).toEqual([98, { forMicros: 20_000, max: 9 }]);
    expect(leaseOf(ruleOf(limited(`${BUCKET}, ${LEASE}`, file)))).toEqual([
      95,
      { forMicros: 50_000, max: 1000 },
    ]);
    expect(leaseOf(ruleOf(limited(BUCKET)))).toEqual([100, undefined]);
    const defaultLease = { forMicros: 10_000, max: 7, exact: true };
    const ofEnvironment = (text: string): Rule =>
      parsePolicy('policy.yaml', Buffer.from(text), () => Buffer.of(), { defaultLease }).policy
        ?.rules[0] as Rule;
    expect(leaseOf(ofEnvironment(limited(BUCKET)))).toEqual([99, { forMicros: 10_000, max: 7 }]);
    expect(leaseOf(ofEnvironment(limited(BUCKET, file)))).toEqual([98, { forMicros: 20_000, max: 9 }]);
  });

  test('never counts denied hits, if it is a window', () => {
    const { rate } = ruleOf(limited(`unit: minute, requests_per_unit: 100, ${LEASE}`));
    expect(rate?.countsDenied(true)).toBe(false);
  });

  test('survives a transfer between threads', () => {
    for (const limit of [BUCKET, 'unit: minute, requests_per_unit: 5']) {
      const { rate } = ruleOf(limited(`${limit}, ${LEASE}`));
      if (rate === undefined) throw new Error('no rate');
      expect(rateOf(rateSpecOf(rate), false)).toEqual(rate);
    }
  });
});

describe('limits that cannot lease', () => {
  const REFUSED = [
    ['concurrency: { max: 5 }', '"lease" cannot be combined with "concurrency"'],
    ['unit: minute, requests_per_unit: 9, hold: { amount: 2 }', '"lease" cannot be combined with "hold"'],
    [
      'unit: minute, requests_per_unit: 9, allow_debt: true',
      '"lease" cannot be combined with allow_debt: true',
    ],
    [
      'unit: minute, requests_per_unit: 9, priorities: { by: class, keep: { a: 2, b: 0 } }',
      '"lease" cannot be combined with "priorities"',
    ],
    ['unit: minute, requests_per_unit: 0', 'it denies every request'],
    [
      'token_bucket: { max_tokens: 9, tokens_per_fill: 100, fill_interval: 1s }',
      'less than half of its capacity',
    ],
    ['token_bucket: { max_tokens: 1, fill_interval: 1h }', 'fewer than 4 tokens, would be left; lower'],
    ['token_bucket: { max_tokens: 4, fill_interval: 1h }', 'fewer than 4 tokens, would be left; lower'],
  ] as const;

  test.each(REFUSED)('%s: is an error in the rule', (limit, message) => {
    const { problems } = parse(limited(`${limit}, ${LEASE}`));
    expect(problems.errors.map(formatProblem).join('\n')).toContain(message);
  });

  test.each(REFUSED)('%s: keeps its limit under the lease of a file, and explain says why', (limit, _) => {
    const plain = ruleOf(limited(limit));
    const text = limited(limit, LEASE);
    expect(leaseOf(ruleOf(text))).toEqual([plain.rate?.reportedLimit, undefined]);
    expect(explained(text)).toContain('no leases, because');
  });

  test('are quotas, and the limits of a chain', () => {
    const quota = `domain: d\ndescriptors: [{ key: a, quota_mode: true, rate_limit: { ${BUCKET}, ${LEASE} } }]`;
    expect(parse(quota).problems.errors).toHaveLength(1);
    const chain = (lease: string, file = ''): string =>
      `domain: d\n${file}\ndescriptors: [{ key: a, rate_limits: [{ name: one, then: two, ${BUCKET} }, ` +
      `{ name: two, ${BUCKET}${lease} }] }]`;
    expect(parse(chain(`, ${LEASE}`)).problems.errors.map(({ message }) => message)).toEqual([
      'the limit cannot lease tokens, because it pays for requests over another limit; remove "lease"',
    ]);
    const { rules } = policyOf(chain('', LEASE));
    expect(rules.map(leaseOf)).toEqual([
      [100, undefined],
      [100, undefined],
    ]);
  });

  test('an unlimited rule has no lease', () => {
    expect(ruleOf(limited('unlimited: true', LEASE)).lease).toBeUndefined();
    expect(parse(limited(`unlimited: true, ${LEASE}`)).problems.errors).toHaveLength(1);
  });

  test.each([
    ['{ for: 4ms }', '5ms to 10s'],
    ['{ for: 11s }', '5ms to 10s'],
    ['{ max: 5 }', '"for" is missing'],
    ['{ for: 50ms, max: 1 }', '2 to 10000'],
    ['{ for: 50ms, max: { plan: x } }', 'cannot take a value from a plan'],
  ])('lease: %s is refused', (lease, message) => {
    const { problems } = parse(limited(`${BUCKET}, lease: ${lease}`));
    expect(problems.errors.map(formatProblem).join('\n')).toContain(message);
  });
});

test('explain, in text, says how much a limit leases', () => {
  expect(explained(limited(`${BUCKET}, ${LEASE}`))).toContain(
    'leases up to 1000 hits for 50ms, which lowers the capacity by 5',
  );
});

describe('a row of a plan', () => {
  const planned = (lease: string): string =>
    `domain: d\nplans: { by: tenant, from: rows.csv, define: { gold: { rate: 100 } } }\ndescriptors: [{ key: tenant, ` +
    `rate_limit: { algorithm: token_bucket, unit: second, requests_per_unit: { plan: rate, default: 200 }${lease}, ` +
    'burst: { plan: burst, default: 200 } } }]';
  const rows = { 'rows.csv': 'tenant,plan,burst\na,gold,100\nb,gold,9\n' };

  test.each([
    ['of the rule', planned(`, ${LEASE}`)],
    ['of the file', `${planned('')}\n${LEASE}`],
  ])('changes the limit with the lease %s, and has none if it refills too fast', (_, text) => {
    const policy = policyOf(text, rows);
    const limits = ['a', 'b', 'c'].map((tenant) => {
      const [rule] = policy.match(entries(`tenant=${tenant}`)).rules;
      return leaseOf(rule as Rule);
    });
    const terms = { forMicros: 50_000, max: 1000 };
    expect(limits).toEqual([
      [95, terms],
      [9, undefined],
      [190, terms],
    ]);
  });
});

describe('weir diff reports', () => {
  const changes = (before: string, after: string): unknown =>
    diffPolicies(setOf(before), setOf(after), NOW).map(({ setting, effect }) => [setting, effect]);
  const plain = limited(BUCKET);
  const window = 'unit: minute, requests_per_unit: 100';

  test('a lease as a lower limit', () => {
    const leased = limited(`${BUCKET}, ${LEASE}`);
    expect(changes(plain, leased)).toEqual([
      ['limit', 'tightens'],
      ['lease', 'tightens'],
    ]);
    expect(changes(leased, plain)).toEqual([
      ['limit', 'loosens'],
      ['lease', 'loosens'],
    ]);
    expect(changes(leased, limited(BUCKET, LEASE))).toEqual([]);
  });

  test('a lease that leaves the limit', () => {
    expect(changes(limited(window), limited(`${window}, ${LEASE}`))).toEqual([
      // Denied hits no longer count.
      ['limit', 'loosens'],
      ['lease', 'tightens'],
    ]);
    const more = limited(`${window}, lease: { for: 50ms, max: 9 }`);
    expect(changes(limited(`${window}, ${LEASE}`), more)).toEqual([['lease', 'tightens']]);
  });

  test('nothing for a limit that cannot lease', () => {
    const slots = 'concurrency: { max: 5 }';
    expect(changes(limited(slots), limited(slots, LEASE))).toEqual([]);
  });
});
