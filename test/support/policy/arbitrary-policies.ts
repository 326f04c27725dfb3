import fc from 'fast-check';
import type { Entry } from '../../../src/limiter/entry.js';

/** Keys of entries and descriptors. Policies treat `token` as secret; `api_key` is a credential in every policy. */
const KEYS = ['a', 'b', 'token', 'api_key', 'group'] as const;
const DIGEST = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';

const phase = fc.constantFrom(
  'monitoring',
  'grace_period',
  'active',
  { active: '2026-01-01T00:00:00Z' },
  { grace_period: '2025-01-01T00:00:00Z', active: '2027-01-01T00:00:00Z' },
);
const headers = fc.constantFrom(['x-ratelimit'], ['retry-after', 'ratelimit'], []);
const upstreamHeaders = fc.constantFrom(['x-ratelimit', 'ratelimit-draft-03'], ['ratelimit'], []);
const denied = fc.constantFrom('problem+json', { body: 'no more', content_type: 'text/plain' }, { body: '' });
const onStoreFailure = fc.constantFrom<unknown>('error', 'allow', 'deny', 'local', { local: 0.25 });
const onUnmatched = fc.constantFrom('warn', 'ignore');
const percent = fc.constantFrom(0, 25, 100);

const rate = fc.oneof(
  fc.record({
    unit: fc.constantFrom('second', 'minute', 'hour', 'day'),
    requests_per_unit: fc.integer({ min: 1, max: 20 }),
  }),
  fc.constantFrom(
    { unit: 'hour', requests_per_unit: 0 },
    { unit: 'minute', requests_per_unit: 5, unit_multiplier: 5 },
    { unit: 'day', requests_per_unit: 9, calendar: 'Europe/Berlin' },
    { unit: 'week', requests_per_unit: 9, calendar: 'UTC', allow_debt: true, max_debt: 3 },
    { unit: 'minute', requests_per_unit: 6, algorithm: 'token_bucket', burst: 9 },
    { token_bucket: { max_tokens: 3, tokens_per_fill: 7, fill_interval: '1s' }, allow_debt: true },
    { concurrency: { max: 5 } },
    { concurrency: { max: 2, expires_after: '90s', retry_after: '3s' } },
    { unit: 'minute', requests_per_unit: 6, hold: { amount: 2, pair: 'oldest' } },
    { unit: 'day', requests_per_unit: 9, hold: { from: 'first_call' }, max_debt: 3 },
    {
      token_bucket: { max_tokens: 30, tokens_per_fill: 7, fill_interval: '1s' },
      hold: { amount: 4, expires_after: '1h', unknown: 'free' },
      max_debt: 0,
    },
  ),
);
const some: { requiredKeys: [] } = { requiredKeys: [] };
const settings = fc.record(
  {
    replaces: fc.constantFrom([{ name: 'one' }], []),
    on_store_failure: onStoreFailure,
    response_headers: headers,
    request_headers: upstreamHeaders,
    denied_response: denied,
    on_over: fc.constantFrom(
      { allow: true },
      { allow: true, request_headers: [{ 'x-over': 'soft' }, { 'x-tier': '2' }], metadata: { tier: 2 } },
    ),
  },
  some,
);
const name = fc.record({ name: fc.constantFrom('one-of', 'two', 'long'.repeat(50)) }, some);
const limit = fc.tuple(rate, settings, name).map((parts) => Object.assign({}, ...parts));
const list = fc
  .uniqueArray(limit, {
    minLength: 1,
    maxLength: 3,
    selector: ({ name: own }: { readonly name?: string }) => own ?? {},
  })
  .map((limits) => limits.map((one, i) => (i === 0 ? { ...one, shadow_mode: true } : one)));
/** A list whose first limit spills into the second one. */
const chain = fc
  .tuple(fc.constantFrom('hour', 'day'), fc.constantFrom('minute', 'week'))
  .map(([plan, credits]) => [
    // biome-ignore lint/suspicious/noThenProperty: a key of policies
    { name: 'two', unit: plan, requests_per_unit: 3, then: 'one-of' },
    { name: 'one-of', unit: credits, requests_per_unit: 5 },
  ]);

/** Values of a node. The texts of one entry often match several nodes. */
const matched = fc.constantFrom<object>(
  {},
  { value: 'x' },
  { value: 'xy' },
  { value: '10.0.0.1' },
  { value: 'x*' },
  { value: '*y*', share_threshold: true },
  { value: 'x*y*' },
  { value: '*' },
  { value_cidr: ['10.0.0.0/8', '2001:db8::/32'] },
  { value_cidr: '10.0.0.0/24', share_threshold: true },
  { value_regex: ['x+', 'y+'] },
  { value_regex: '[xy]+', share_threshold: true },
);

/** Returns whether ends with `pair: oldest` would leave the slots of a concurrency limit taken. */
const isInvalid = (limits: string): boolean =>
  limits.includes('"oldest"') && limits.includes('"concurrency"');

const rules = fc
  .oneof(
    fc.constant({}),
    limit.map((one) => ({ rate_limit: one })),
    fc.constant({ rate_limit: { unlimited: true } }),
    fc.oneof({ arbitrary: list, weight: 4 }, chain).map((limits) => ({ rate_limits: limits })),
  )
  .filter((limits) => !isInvalid(JSON.stringify(limits)));
const options = fc.record(
  {
    detailed_metric: fc.boolean(),
    value_to_metric: fc.boolean(),
    phase,
    shadow_mode: fc.boolean(),
    enforce_percent: percent,
    on_unmatched: onUnmatched,
    metadata: fc.constant({ team: 'a', deep: { list: [1, null, 'x'] } }),
  },
  some,
);

type Descriptor = { readonly key: string } & Readonly<Record<string, unknown>>;

const { nodes } = fc.letrec<{ nodes: Descriptor[] }>((tie) => ({
  nodes: fc.uniqueArray(
    fc
      .tuple(
        fc.constantFrom(...KEYS),
        matched,
        rules,
        options,
        fc.option(tie('nodes'), { maxDepth: 2, depthSize: 'small' }),
      )
      .map(([key, ...[own, limits, more, below]]) => ({
        key,
        ...own,
        ...limits,
        ...more,
        ...(below === null ? {} : { descriptors: below }),
      })),
    {
      maxLength: 5,
      selector: ({ key, value, value_cidr, value_regex }: Record<string, unknown>) =>
        JSON.stringify([key, value, value_cidr, value_regex]),
    },
  ) as fc.Arbitrary<Descriptor[]>,
}));

const derive = fc.constantFrom(
  [{ entry: 'a', from: ['token'], sha256: { [DIGEST]: 'x', ['0'.repeat(64)]: 'y' } }],
  [
    {
      entry: 'group',
      from: ['b', 'path'],
      rules: [
        { b: 'x', path: '/a/{b,c}/**', value: 'x' },
        { path: '/?[a-z]', value: 'y' },
        { value: 'other' },
      ],
    },
  ],
  [
    { entry: 'b', from: ['token'], sha256: {} },
    { entry: 'group', from: ['a'], rules: [{ a: 'x', value: 'xx' }] },
  ],
);

/** Generates a valid policy of the domain `d`, as the mapping that its file contains. */
export const arbitraryPolicy: fc.Arbitrary<Readonly<Record<string, unknown>>> = fc
  .record(
    {
      phase,
      algorithm: fc.constantFrom('fixed_window', 'token_bucket'),
      response_headers: headers,
      request_headers: upstreamHeaders,
      denied_response: denied,
      decision_metadata: fc.boolean(),
      on_store_failure: onStoreFailure,
      enforce_percent: percent,
      on_unmatched: onUnmatched,
      derive,
      descriptors: nodes,
    },
    { requiredKeys: ['descriptors'] },
  )
  .map((file) => ({ domain: 'd', ...file }));

/** Generates the entries of a descriptor that may match an {@link arbitraryPolicy}. */
export const arbitraryEntries: fc.Arbitrary<readonly Entry[]> = fc.array(
  fc.record({
    key: fc.constantFrom(...KEYS, 'path'),
    value: fc.constantFrom('', 'x', 'xy', 'xx', 'y', '10.0.0.1', '10.1.2.3', '2001:DB8::1', '/a/b', '/1z'),
  }),
  { maxLength: 4 },
);
