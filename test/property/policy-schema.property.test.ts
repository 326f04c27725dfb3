import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { formatProblem } from '../../src/config/yaml/config-problem.js';
import { expectEqual } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { parse } from '../support/policy/policies.js';
import { schemaErrors } from '../support/policy/policy-schema.js';

/** Values that are valid in some places and invalid in others. */
const scalar = fc.constantFrom<unknown>(
  'a',
  'b*',
  '',
  1,
  0,
  -1,
  2.5,
  true,
  false,
  'day',
  'second',
  '1s',
  '10.0.0.0/8',
);
const bool = fc.boolean();
const phase = fc.oneof(
  fc.constantFrom<unknown>('monitoring', 'active', 'later'),
  fc.record(
    {
      grace_period: fc.constant('2030-01-01T00:00:00Z'),
      active: fc.constantFrom('2031-01-01T00:00:00Z', 'soon'),
    },
    { requiredKeys: [] },
  ),
);
const failure = fc.constantFrom<unknown>(
  'error',
  'allow',
  'deny',
  'local',
  'panic',
  { local: 0.25 },
  { local: 1 },
  { local: 0 },
  { local: 25 },
  { local: '25%' },
  {},
);
const percent = fc.constantFrom<unknown>(0, 12.5, 100, 101);
const headers = fc.array(
  fc.constantFrom('x-ratelimit', 'retry-after', 'ratelimit-draft-03', 'ratelimit', 'none'),
  { maxLength: 2 },
);
const denied = fc.constantFrom<unknown>(
  'problem+json',
  'html',
  { body: 'no', content_type: 'text/html' },
  { body: 5, content_type: 'html' },
  { content_type: 'text/html' },
);
const whole = fc.constantFrom<unknown>(0, 1, 5, 100, 2 ** 32 - 1, 2 ** 32, 1.5);

const expiry = fc.constantFrom<unknown>('1ms', '60s', '168h', 5);
const unknownUse = fc.constantFrom<unknown>('keep', 'free', 'lose');
const optional: { requiredKeys: [] } = { requiredKeys: [] };

/** Each key with a few of its values. The combinations are random. */
const rateFields = {
  token_bucket: fc.record(
    { max_tokens: whole, tokens_per_fill: whole, fill_interval: fc.constantFrom<unknown>('1s', '1h', 5) },
    { requiredKeys: ['max_tokens', 'fill_interval'] },
  ),
  unit: fc.constantFrom('second', 'Day', 'month', 'eon'),
  requests_per_unit: whole,
  unit_multiplier: whole,
  calendar: fc.constantFrom('Europe/Berlin', 'UTC', 'nowhere'),
  algorithm: fc.constantFrom('fixed_window', 'token_bucket', 'leaky'),
  burst: whole,
  concurrency: fc.record({ max: whole, expires_after: expiry, retry_after: expiry }, optional),
  hold: fc.record(
    {
      amount: whole,
      from: fc.constantFrom('first_call', 'last'),
      expires_after: expiry,
      unknown: unknownUse,
      pair: fc.constantFrom<unknown>('token', 'oldest', 'newest'),
    },
    optional,
  ),
  allow_debt: bool,
  max_debt: whole,
};
const ruleFields = {
  name: fc.constantFrom<unknown>('n', 'm', 3),
  on_store_failure: failure,
  response_headers: headers,
  denied_response: denied,
  replaces: fc.array(fc.record({ name: fc.constantFrom('n', 'm') }), { maxLength: 1 }),
};
/**
 * Returns an object with some of the fields. Few fields are enough, because most objects with many random fields are
 * invalid.
 */
function some<T>(
  fields: Readonly<Record<string, fc.Arbitrary<T> | fc.Arbitrary<unknown>>>,
  maxLength: number,
): fc.Arbitrary<Record<string, unknown>> {
  const pairs = fc.oneof(
    ...Object.entries(fields).map(([key, value]) =>
      fc.tuple(fc.constant(key), value as fc.Arbitrary<unknown>),
    ),
  );
  return fc.array(pairs, { maxLength }).map((list) => Object.fromEntries(list));
}
const goodBase = fc.constantFrom<Record<string, unknown>>(
  { unit: 'day', requests_per_unit: 5 },
  { unit: 'hour', requests_per_unit: 5, algorithm: 'token_bucket' },
  { token_bucket: { max_tokens: 10, fill_interval: '1s' } },
  { unit: 'day', requests_per_unit: 5, hold: { amount: 1 } },
  { concurrency: { max: 5 } },
  {},
);
const mixed = (fields: fc.Arbitrary<Record<string, unknown>>): fc.Arbitrary<Record<string, unknown>> =>
  fc.tuple(goodBase, fields).map(([base, more]) => ({ ...base, ...more }));
const rateLimit = mixed(some({ ...rateFields, ...ruleFields, unlimited: bool }, 2));
const item = mixed(
  some({ ...rateFields, ...ruleFields, phase, shadow_mode: bool, enforce_percent: percent }, 2),
);
const nodeFields = {
  value: scalar,
  value_cidr: fc.constantFrom<unknown>('10.0.0.0/8', ['2001:db8::/32', '192.0.2.1'], 'x', []),
  value_regex: fc.constantFrom<unknown>('[a-z]+', ['a', 'b'], []),
  phase,
  enforce_percent: percent,
  share_threshold: bool,
  shadow_mode: bool,
  quota_mode: bool,
  detailed_metric: bool,
  metadata: fc.constantFrom<unknown>({ a: 1 }, null, 'text'),
  rate_limit: rateLimit,
  rate_limits: fc.array(item, { maxLength: 2 }),
};
const node = fc
  .tuple(fc.constantFrom<unknown>('k', 'l', 5), rateLimit, some(nodeFields, 4), bool)
  .map(([key, limit, fields, limited]) => ({
    key,
    ...(limited && !('rate_limits' in fields) ? { rate_limit: limit } : {}),
    ...fields,
  }));
const policy = fc
  .tuple(
    some(
      {
        phase,
        on_store_failure: failure,
        response_headers: headers,
        denied_response: denied,
        algorithm: rateFields.algorithm,
        enforce_percent: percent,
        decision_metadata: bool,
      },
      2,
    ),
    node,
  )
  .map(([fields, only]) => ({ domain: 'd', ...fields, descriptors: [only] }));

test('a policy that loads without a warning matches the schema', () => {
  let good = 0;
  fc.assert(
    fc.property(policy, (value) => {
      const text = stringify(value);
      const { problems } = parse(text);
      if (problems.errors.length + problems.warnings.length > 0) return;
      good += 1;
      expectEqual([text, schemaErrors(text)], [text, []]);
    }),
    runs(4000),
  );
  // Enough of the policies must be valid.
  expect(good).toBeGreaterThan(200);
});

test('a policy that matches the schema loads, except for errors that a schema cannot express', () => {
  const BEYOND_SCHEMA = new RegExp(
    '(add|write) algorithm: token_bucket|bits set after|would then never apply|(listed|defined) twice|' +
      'two limits in this list|never allows more than|own name|100 years|time zone|already defined at this level|' +
      'write a duration from',
  );
  fc.assert(
    fc.property(policy, (value) => {
      const text = stringify(value);
      fc.pre(schemaErrors(text).length === 0);
      const errors = parse(text).problems.errors.map(formatProblem);
      expectEqual([text, errors.filter((error) => !BEYOND_SCHEMA.test(error))], [text, []]);
    }),
    runs(1000),
  );
});
