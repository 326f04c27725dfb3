/* The inputs of the golden files: requests, takes and command lines. golden.ts runs them. */
import type { Descriptor } from '../../../src/codec/messages.js';
import type { AnswerOptions } from '../../../src/service/answer/answer-options.js';
import { descriptor } from '../policy/decider.js';

/** A request as an object, or the bytes of a message in hex. */
export type GoldenRequest =
  | { readonly domain: string; readonly descriptors: readonly Descriptor[]; readonly hitsAddend: number }
  | string;

/** Requests to a service with full buckets, in order. */
export interface WireCase {
  readonly name: string;
  readonly answers?: Partial<AnswerOptions>;
  readonly requests: readonly GoldenRequest[];
}

const KEYS = 'every-key';
const PLAIN = 'plain';

function ask(domain: string, descriptors: readonly Descriptor[], hitsAddend = 0): GoldenRequest {
  return { domain, descriptors, hitsAddend };
}

/** Returns a request that repeats one descriptor of `key=value` strings `times` times. */
function one(domain: string, texts: readonly string[], times = 1, more: Partial<Descriptor> = {}) {
  return Array.from({ length: times }, () => ask(domain, [descriptor(texts, more)]));
}

const CHATS = ['api_key=acme-key', 'method=GET', 'path=/open/v5/user-chats'];
const names = (prefix: string) => ({
  limit: `${prefix}limit`,
  remaining: `${prefix}remaining`,
  reset: `${prefix}reset`,
});
const TAKES = one(PLAIN, ['tenant=acme'], 3);

/** Requests that the codec must refuse, or that contain no descriptors. */
const BAD_REQUESTS: readonly GoldenRequest[] = [
  ask('', [descriptor(['tenant=acme'])]),
  ask(PLAIN, []),
  ask(PLAIN, [descriptor([])]),
  ask(PLAIN, [descriptor(['=acme'])]),
  ask(PLAIN, [descriptor(['tenant='])]),
  ask(
    PLAIN,
    Array.from({ length: 5 }, () => descriptor(['tenant=acme'])),
  ),
  ...one(PLAIN, ['tenant=acme'], 1, { limit: { requestsPerUnit: 1, unit: 0 } }),
  ...one(PLAIN, ['tenant=acme'], 1, { limit: { requestsPerUnit: 1, unit: 99 } }),
  '',
  '0a',
  '0affffffff0f',
  'ff',
  '0a01801200',
];

export const WIRE_CASES: readonly WireCase[] = [
  { name: 'window', requests: TAKES },
  { name: 'token bucket', requests: one(PLAIN, ['bucket=b'], 2) },
  {
    name: 'hits of the request',
    requests: [ask(PLAIN, [descriptor(['bucket=b'])], 59), ...one(PLAIN, ['bucket=b'], 2)],
  },
  {
    name: 'hits of the descriptor',
    requests: [ask(PLAIN, [descriptor(['bucket=b'], { hitsAddend: 7 })], 59)],
  },
  { name: 'peek', requests: [...one(PLAIN, ['tenant=acme'], 1, { hitsAddend: 0 }), ...TAKES] },
  {
    name: 'refund',
    requests: [...TAKES, ...one(PLAIN, ['tenant=acme'], 2, { hitsAddend: 2, isNegativeHits: true })],
  },
  { name: 'never passes', requests: one(PLAIN, ['bucket=b'], 2, { hitsAddend: 61 }) },
  { name: 'most hits', requests: one(PLAIN, ['bucket=b'], 1, { hitsAddend: Number.MAX_SAFE_INTEGER }) },
  { name: 'override', requests: one(PLAIN, ['tenant=acme'], 2, { limit: { requestsPerUnit: 1, unit: 4 } }) },
  {
    name: 'override in a list',
    requests: one(KEYS, ['tenant=a', 'plan=gold'], 2, { limit: { requestsPerUnit: 1, unit: 3 } }),
  },
  {
    name: 'several descriptors',
    requests: [
      ask(PLAIN, [descriptor(['tenant=a']), descriptor(['bucket=b']), descriptor(['nobody=knows'])]),
    ],
  },
  {
    name: 'one bucket twice',
    requests: [ask(PLAIN, [descriptor(['tenant=a']), descriptor(['tenant=a']), descriptor(['tenant=a'])])],
  },
  {
    name: 'unmatched',
    requests: [...one(PLAIN, ['nobody=knows']), ...one(PLAIN, ['tenant=acme', 'more=1'])],
  },
  { name: 'unknown domain', requests: one('unknown', ['tenant=acme']) },
  { name: 'headers: x-ratelimit', requests: one(PLAIN, ['x-ratelimit=a'], 2) },
  { name: 'headers: retry-after', requests: one(PLAIN, ['retry-after=a'], 2) },
  { name: 'headers: ratelimit-draft-03', requests: one(PLAIN, ['draft-03=a'], 2) },
  { name: 'headers: ratelimit', requests: one(PLAIN, ['ratelimit=a'], 2) },
  {
    name: 'headers: several rules',
    requests: [
      ask(PLAIN, [descriptor(['x-ratelimit=a']), descriptor(['ratelimit=a']), descriptor(['draft-03=a'])]),
    ],
  },
  {
    name: 'headers: of the environment',
    answers: { limitHeaders: names('RateLimit-'), limitRequestHeaders: names('X-Up-') },
    requests: TAKES,
  },
  {
    name: 'headers: Envoy adds them',
    answers: { envoyAdds: { xRateLimit: true, retryAfter: true } },
    requests: [...one(PLAIN, ['x-ratelimit=a'], 2), ...one(PLAIN, ['retry-after=a'], 2)],
  },
  { name: 'SHADOW_MODE', answers: { shadowMode: true }, requests: TAKES },
  { name: 'QUOTA_MODE', answers: { quotaMode: true }, requests: [...TAKES, ...one(PLAIN, ['nobody=knows'])] },
  {
    name: 'RESPONSE_DYNAMIC_METADATA',
    answers: { dynamicMetadata: true },
    requests: one(PLAIN, ['team=a'], 3),
  },
  { name: 'DECISION_METADATA', answers: { decisionMetadata: true }, requests: TAKES },
  {
    name: 'both kinds of metadata',
    answers: { dynamicMetadata: true, decisionMetadata: true },
    requests: one(PLAIN, ['team=a'], 3),
  },
  { name: 'derived from a key', requests: one(KEYS, CHATS, 4) },
  {
    name: 'derived from a file, shared',
    requests: [
      ...one(KEYS, ['api_key=globex-key', 'method=PUT', 'path=/open/v1/x']),
      ...one(KEYS, ['api_key=globex-key', 'resource_group=b'], 2),
    ],
  },
  { name: 'derived from an unknown key', requests: one(KEYS, ['api_key=nobody'], 6) },
  { name: 'several limits', requests: one(KEYS, ['tenant=a', 'plan=gold'], 4) },
  {
    name: 'addresses',
    requests: [...one(KEYS, ['address=10.1.2.3'], 3), ...one(KEYS, ['address=2001:db8::1'])],
  },
  { name: 'regular expressions', requests: [...one(KEYS, ['address=host-1']), ...one(KEYS, ['address=v2'])] },
  { name: 'grace period', requests: one(KEYS, ['soon=a'], 2) },
  { name: 'shadow mode', requests: one(KEYS, ['watched=a'], 2) },
  { name: 'enforce_percent', requests: one(KEYS, ['half=a'], 2) },
  {
    name: 'debt',
    requests: [
      ...one(KEYS, ['charged=a'], 2, { hitsAddend: 25 }),
      ...one(KEYS, ['charged_window=a'], 2, { hitsAddend: 15 }),
    ],
  },
  { name: 'soft limit', requests: one(KEYS, ['softly=a'], 2) },
  { name: 'unlimited', requests: one(KEYS, ['free=a']) },
  {
    name: 'exempt, and a limit of 0',
    requests: [...one(KEYS, ['exempt=staff']), ...one(KEYS, ['exempt=guest'])],
  },
  { name: 'replaces', requests: [ask(KEYS, [descriptor(['tenant=a']), descriptor(['vip=a'])])] },
  {
    name: 'quotas',
    requests: Array.from({ length: 3 }, () =>
      ask(KEYS, [descriptor(['quota=first']), descriptor(['quota=second'])]),
    ),
  },
  { name: 'large message', requests: one(PLAIN, [`tenant=${'x'.repeat(20_000)}`], 2) },
  { name: 'bad requests', requests: BAD_REQUESTS },
];

/** Requests to Redis, on windows and buckets that do not expire during the test. */
export const REDIS_REQUESTS: readonly GoldenRequest[] = [
  ...one(PLAIN, ['tenant=acme'], 3),
  ...one(PLAIN, [`tenant=${'x'.repeat(200)}`]),
  ...one(PLAIN, ['tenant=acme'], 1, { limit: { requestsPerUnit: 7, unit: 4 } }),
  ...one(PLAIN, ['tenant=back'], 2),
  ...one(PLAIN, ['tenant=back'], 1, { isNegativeHits: true }),
  ...one(KEYS, CHATS, 2),
  ...one(KEYS, ['api_key=globex-key', 'resource_group=b']),
  ...one(KEYS, ['api_key=nobody']),
  ...one(KEYS, ['tenant=a', 'plan=gold'], 2),
  ...one(KEYS, ['tenant=a', 'plan=gold'], 1, { limit: { requestsPerUnit: 9, unit: 5 } }),
  ...one(KEYS, ['address=10.1.2.3']),
  ...one(KEYS, ['address=v2']),
  ...one(KEYS, ['charged=a'], 1, { hitsAddend: 25 }),
  ...one(KEYS, ['charged_window=a'], 1, { hitsAddend: 25 }),
  ...one(KEYS, ['free=a']),
  ask(KEYS, [descriptor(['quota=first']), descriptor(['quota=second'])]),
];

/**
 * Descriptors that `weir explain` also shows as JSON: an address, and one without a rule.
 * test/unit/config/show/explain-json has the rest.
 */
export const EXPLAINED_AS_JSON: readonly (readonly string[])[] = [['address=10.1.2.3'], ['exempt=staff']];

/** Policies of deploy/, and the descriptors that `weir explain` shows for each. */
export const POLICIES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'deploy/policies/open-api.yaml': [
    ['tenant=acme', 'method=GET', 'path=/open/v5/user-chats'],
    ['tenant=acme'],
  ],
  'deploy/kubernetes/policies.yaml': [['tenant=acme', 'method=POST', 'path=/open/v5/groups']],
  'deploy/init/policies/my-api.yaml': [['tenant=acme', 'method=GET', 'path=/open/v5/user-chats']],
  'deploy/from-ratelimit/config/shop.yaml': [['customer=mallory'], ['path=/search/shoes']],
  'deploy/reference-example/ratelimit/config/shop.yaml': [['customer=mallory']],
  'test/contract/golden/policies/every-key.yaml': [
    CHATS,
    ['tenant=a'],
    ...EXPLAINED_AS_JSON,
    ['api_key=globex-key', 'resource_group=b'],
    ['tenant=a', 'plan=gold'],
    ['address=host-1'],
    ['address=elsewhere'],
    ...['soon', 'charged', 'free', 'slot', 'reserved', 'softly'].map((key) => [`${key}=a`]),
    ['nobody=knows'],
  ],
  'test/contract/golden/policies/plain.yaml': [['bucket=b']],
};

/** An earlier version of every-key.yaml for `weir diff`: pairs of current and earlier texts. */
export const EARLIER_TEXTS: readonly (readonly [now: string, before: string])[] = [
  ['requests_per_unit: 1, phase: monitoring', 'requests_per_unit: 1'],
  ['response_headers: [x-ratelimit, retry-after]', 'response_headers: []'],
  ['on_store_failure: allow', 'on_store_failure: error'],
  ['{v4,v5}/user-chats', 'v4/user-chats'],
  ['max_tokens: 3', 'max_tokens: 9'],
  ['share_threshold: true\n        rate_limit: { name: other', 'rate_limit: { name: other'],
  ['requests_per_unit: 2, on_store_failure: local', 'requests_per_unit: 1, on_store_failure: local'],
  ['name: tried', 'name: tested'],
  ['[10.0.0.0/8, ', '[10.0.0.0/9, '],
  ['    shadow_mode: true\n    rate_limit: { unit: hour', '    rate_limit: { unit: hour'],
  ['enforce_percent: 50', 'enforce_percent: 20'],
  ['max_debt: 30', 'max_debt: 5'],
  ['  - key: exempt\n    value: staff\n', ''],
  [', replaces: [{ name: per-tenant }]', ''],
  ['name: second, unit: hour', 'name: second, unit: day'],
  [', request_headers: [{ x-weir-over: softly }], metadata: { tier: low }', ''],
];
