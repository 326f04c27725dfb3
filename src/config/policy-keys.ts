/** Keys at the top of a policy file. */
export const ROOT_KEYS: readonly string[] = [
  'domain',
  'phase',
  'response_headers',
  'on_store_failure',
  'derive',
  'descriptors',
];

/** Keys of a descriptor. */
export const NODE_KEYS: readonly string[] = [
  'key',
  'value',
  'value_cidr',
  'value_regex',
  'phase',
  'share_threshold',
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'metadata',
  'rate_limit',
  'descriptors',
];

/** Keys of a `rate_limit`. */
export const RATE_LIMIT_KEYS: readonly string[] = [
  'name',
  'replaces',
  'token_bucket',
  'unit',
  'requests_per_unit',
  'unlimited',
  'on_store_failure',
];

const ON_A_DESCRIPTOR = 'on a descriptor';
const IN_RATE_LIMIT = 'in "rate_limit"';

/**
 * Keys of envoyproxy/ratelimit and where they belong. It accepts them in any mapping and ignores them in the wrong one, so its
 * files may hold them anywhere: that is a warning here, where an unknown key is an error.
 */
export const MISPLACED_KEYS: ReadonlyMap<string, string> = new Map([
  ['domain', 'at the top of the file'],
  ['key', ON_A_DESCRIPTOR],
  ['value', ON_A_DESCRIPTOR],
  ['descriptors', 'at the top of the file or on a descriptor'],
  ['rate_limit', ON_A_DESCRIPTOR],
  ['shadow_mode', `${ON_A_DESCRIPTOR}, beside "rate_limit"`],
  ['quota_mode', `${ON_A_DESCRIPTOR}, beside "rate_limit"`],
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

/** Every key of the format. */
export const ALL_KEYS: readonly string[] = [...new Set([...ROOT_KEYS, ...NODE_KEYS, ...RATE_LIMIT_KEYS])];
