import type { RedisPrefix } from './redis-instance-settings.js';
import type { RefusedSetting, SettingType } from './spec.js';

const NO_POOL = 'weir uses one connection instead of a pool.';
const ONE_CALL = 'weir always combines all decisions in the same event-loop turn into one call.';
const ALL_AT_ONCE = 'weir always calls all nodes of a cluster in parallel.';
const LEAVES_REPLICAS = 'weir always disconnects from a read-only Redis and looks for the master.';
const NO_IAM = 'use REDIS_AUTH_FILE for IAM logins; weir does not start with REDIS_AWS_IAM_AUTH=true.';
const OWN_EXPIRY =
  'keys expire when their bucket is full or their window ends, so keys do not all expire at the same time.';
const NO_MEMCACHE = 'weir does not support BACKEND_TYPE=memcache.';

/** Returns the ignored variables of one Redis; `prefix` starts their names. */
function inertRedisSettings(prefix: RedisPrefix): readonly (readonly [name: string, reason: string])[] {
  return [
    [`${prefix}_POOL_SIZE`, NO_POOL],
    [`${prefix}_POOL_ON_EMPTY_BEHAVIOR`, NO_POOL],
    [`${prefix}_PIPELINE_WINDOW`, ONE_CALL],
    [`${prefix}_PIPELINE_LIMIT`, ONE_CALL],
    [`${prefix}_CLUSTER_PIPELINE_PARALLELISM`, ALL_AT_ONCE],
    [`${prefix}_CLOSE_CONNECTION_ON_READONLY_ERROR`, LEAVES_REPLICAS],
    [`${prefix}_AWS_IAM_AUTH`, NO_IAM],
    [`${prefix}_AWS_IAM_CACHE_NAME`, NO_IAM],
    [`${prefix}_AWS_IAM_USER_ID`, NO_IAM],
  ];
}

/**
 * Variables of envoyproxy/ratelimit, the reference, that weir accepts and ignores, each with the reason. The log
 * contains the reason if the variable is set.
 */
export const INERT_SETTINGS: ReadonlyMap<string, string> = new Map([
  ...inertRedisSettings('REDIS'),
  ['EXPIRATION_JITTER_MAX_SECONDS', OWN_EXPIRY],
  ...inertRedisSettings('REDIS_PERSECOND'),
  ['MEMCACHE_HOST_PORT', NO_MEMCACHE],
  ['MEMCACHE_MAX_IDLE_CONNS', NO_MEMCACHE],
  ['MEMCACHE_SRV', NO_MEMCACHE],
  ['MEMCACHE_SRV_REFRESH', NO_MEMCACHE],
  ['MEMCACHE_TLS', NO_MEMCACHE],
  ['MEMCACHE_TLS_CLIENT_CERT', NO_MEMCACHE],
  ['MEMCACHE_TLS_CLIENT_KEY', NO_MEMCACHE],
  ['MEMCACHE_TLS_CACERT', NO_MEMCACHE],
  ['MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION', NO_MEMCACHE],
]);

/**
 * Settings of earlier versions of weir that are accepted and ignored, so that an upgrade does not fail, each with the
 * reason. The log contains the reason if the variable is set.
 */
export const REMOVED_SETTINGS: ReadonlyMap<string, string> = new Map([
  ['RLS_CODEC', 'weir always uses its own codec; unset this variable.'],
]);

/** Returns the reasons of {@link INERT_SETTINGS}, each with the variables that have it, for the manual. */
export function inertByReason(): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [name, reason] of INERT_SETTINGS) {
    const list = names.get(reason);
    if (list === undefined) names.set(reason, [name]);
    else list.push(name);
  }
  return names;
}

/**
 * Types of ignored variables that are not strings. If the reference cannot parse a value, neither the reference nor
 * weir starts.
 */
const TYPES: readonly (readonly [names: RegExp, type: SettingType])[] = [
  [/_POOL_SIZE$|_PIPELINE_LIMIT$|_PIPELINE_PARALLELISM$|^EXPIRATION_JITTER_MAX_SECONDS$/, 'integer'],
  [/_PIPELINE_WINDOW$/, 'duration'],
  [/_POOL_ON_EMPTY_BEHAVIOR$/, 'pool_on_empty'],
  [/_CLOSE_CONNECTION_ON_READONLY_ERROR$|_AWS_IAM_AUTH$/, 'boolean'],
];

/** Returns the type of one of {@link INERT_SETTINGS} or {@link REMOVED_SETTINGS}. */
export function inertType(name: string): SettingType {
  return TYPES.find(([names]) => names.test(name))?.[1] ?? 'string';
}

/**
 * Returns the errors of a valid value of one of {@link INERT_SETTINGS} that ends the start of the reference, and of
 * weir.
 */
export function refusedInert(name: string, value: unknown): readonly RefusedSetting[] {
  if (name.endsWith('_AWS_IAM_AUTH') && value === true) {
    const file = name.replace('AWS_IAM_AUTH', 'AUTH_FILE');
    const sentence =
      `weir does not create AWS tokens; unset this variable, and set ${file} to a file that contains ` +
      'user:token, as shown in docs/operate/redis-login.md';
    return [{ variables: [name], sentence }];
  }
  if (inertType(name) !== 'pool_on_empty' || value === 'WAIT') return [];
  const sentence =
    `with ${String(value)}, envoyproxy/ratelimit does not start either; unset this variable, and use ` +
    'REDIS_MAX_IN_FLIGHT to bound the number of limits that wait for Redis';
  return [{ variables: [name], sentence }];
}
