import { keysOf, RATE_FIELDS } from './policy-fields.js';

/** Keys at the top of a policy file. */
export const ROOT_KEYS: readonly string[] = keysOf('file');

/** Keys of a descriptor. */
export const NODE_KEYS: readonly string[] = keysOf('descriptor');

/** Keys that set the rate of a `rate_limit`, or an item of `rate_limits`. */
export const RATE_KEYS: readonly string[] = Object.keys(RATE_FIELDS);

/** Keys of a `rate_limit`. */
export const RATE_LIMIT_KEYS: readonly string[] = keysOf('rate_limit');

/** Keys of an item of `rate_limits`. */
export const LIMIT_KEYS: readonly string[] = keysOf('rate_limits_item');

/** Keys that users are likely to put in an item of `rate_limits`, where they are unknown, and what to do instead. */
export const NOT_IN_LIMITS: ReadonlyMap<string, string> = new Map([
  [
    'unlimited',
    'a limit in a list cannot be unlimited; remove the item, or use rate_limit: { unlimited: true }',
  ],
  [
    'quota_mode',
    'a list denies as soon as one of its limits is exceeded, so its limits cannot be quotas; remove "quota_mode"',
  ],
]);

/** Such keys for a descriptor. */
export const NOT_IN_DESCRIPTOR: ReadonlyMap<string, string> = new Map([
  [
    'actions',
    'this key belongs to a route in the Envoy configuration, where it defines descriptors; move the key ' +
      'to that route, and limit the descriptors here with "key" and "rate_limit"',
  ],
]);

const ON_A_DESCRIPTOR = 'in an item of "descriptors"';
const IN_RATE_LIMIT = 'in "rate_limit"';

/**
 * Keys of envoyproxy/ratelimit and the mapping that each belongs to. envoyproxy/ratelimit accepts these keys in any
 * mapping and ignores them in the wrong one, so existing files may have them anywhere. A misplaced key is therefore a
 * warning here, while an unknown key is an error.
 */
export const MISPLACED_KEYS: ReadonlyMap<string, string> = new Map([
  ['domain', 'at the top of the file'],
  ['key', ON_A_DESCRIPTOR],
  ['value', ON_A_DESCRIPTOR],
  ['descriptors', 'at the top of the file or in an item of "descriptors"'],
  ['rate_limit', ON_A_DESCRIPTOR],
  ['shadow_mode', `${ON_A_DESCRIPTOR}, next to "rate_limit"`],
  ['quota_mode', `${ON_A_DESCRIPTOR}, next to "rate_limit"`],
  ['detailed_metric', ON_A_DESCRIPTOR],
  ['value_to_metric', ON_A_DESCRIPTOR],
  ['share_threshold', ON_A_DESCRIPTOR],
  ['metadata', ON_A_DESCRIPTOR],
  ['unit', IN_RATE_LIMIT],
  ['requests_per_unit', IN_RATE_LIMIT],
  ['unlimited', IN_RATE_LIMIT],
  ['name', IN_RATE_LIMIT],
  ['replaces', IN_RATE_LIMIT],
]);

const IN_FILE_OR_RATE_LIMIT = `at the top of the file or ${IN_RATE_LIMIT}`;

/** Keys that only weir has, and the mapping that each belongs to. A misplaced one is an error. */
export const WEIR_KEYS: ReadonlyMap<string, string> = new Map([
  ['phase', `at the top of the file, ${ON_A_DESCRIPTOR} or in an item of "rate_limits"`],
  ['derive', 'at the top of the file'],
  ['plans', 'at the top of the file'],
  ['decision_metadata', 'at the top of the file'],
  ['response_headers', IN_FILE_OR_RATE_LIMIT],
  ['request_headers', IN_FILE_OR_RATE_LIMIT],
  ['denied_response', IN_FILE_OR_RATE_LIMIT],
  ['on_store_failure', IN_FILE_OR_RATE_LIMIT],
  ['on_unmatched', `at the top of the file or ${ON_A_DESCRIPTOR}`],
  ['value_cidr', `${ON_A_DESCRIPTOR}, instead of "value"`],
  ['value_regex', `${ON_A_DESCRIPTOR}, instead of "value"`],
  ['token_bucket', IN_RATE_LIMIT],
  ['unit_multiplier', IN_RATE_LIMIT],
  ['calendar', IN_RATE_LIMIT],
  ['algorithm', IN_FILE_OR_RATE_LIMIT],
  ['burst', IN_RATE_LIMIT],
  ['concurrency', IN_RATE_LIMIT],
  ['hold', IN_RATE_LIMIT],
  ['on_over', IN_RATE_LIMIT],
  ['then', 'in an item of "rate_limits"'],
  ['allow_debt', IN_RATE_LIMIT],
  ['max_debt', IN_RATE_LIMIT],
  ['rate_limits', `${ON_A_DESCRIPTOR}, instead of "rate_limit"`],
  ['enforce_percent', `at the top of the file, ${ON_A_DESCRIPTOR} or in an item of "rate_limits"`],
]);

/**
 * Keys that should never be left empty: `descriptors` and keys that only weir has. An empty key counts as absent, like
 * any key, but that is rarely intended: another limit, or none, may apply.
 */
export const NEVER_EMPTY: ReadonlySet<string> = new Set([
  'descriptors',
  'algorithm',
  'on_unmatched',
  'enforce_percent',
  'denied_response',
  'decision_metadata',
  'unit_multiplier',
  'calendar',
  'burst',
  'hold',
  'then',
  'allow_debt',
  'max_debt',
]);

/** Every key of the format. */
export const ALL_KEYS: readonly string[] = [
  ...new Set([...ROOT_KEYS, ...NODE_KEYS, ...RATE_LIMIT_KEYS, ...LIMIT_KEYS]),
];
