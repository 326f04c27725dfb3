import { isDeepStrictEqual } from 'node:util';
import type { Mogrifier } from '../../telemetry/statsd/dogstatsd-udp.js';
import { ANSWER_SETTINGS } from './answer-settings.js';
import { LISTEN_SETTINGS } from './listen-settings.js';
import { POLICY_SETTINGS } from './policy-settings.js';
import { parseValue, type Row, type SettingType, type SettingTypes } from './settings-values.js';
import { PER_SECOND_SETTINGS, STORE_SETTINGS } from './store-settings.js';
import { TELEMETRY_SETTINGS } from './telemetry-settings.js';

/** A variable of envoyproxy/ratelimit, the reference, that weir accepts and ignores. */
interface InertRow {
  readonly name: string;
  /** If the reference cannot parse a value, neither the reference nor weir starts. */
  readonly type: SettingType;
  /** Sentence with the reason, which the log contains if the variable is set. */
  readonly reason: string;
}

function inert(type: SettingType, reason: string, ...names: readonly string[]): readonly InertRow[] {
  return names.map((name) => ({ name, type, reason }));
}

const NO_POOL = 'weir uses one connection instead of a pool.';
const ONE_CALL = 'weir always combines all decisions in the same event-loop turn into one call.';
const NO_IAM = 'use REDIS_AUTH_FILE for IAM logins; weir does not start with REDIS_AWS_IAM_AUTH=true.';

function inertRedisRows(prefix: 'REDIS' | 'REDIS_PERSECOND'): readonly InertRow[] {
  return [
    ...inert('integer', NO_POOL, `${prefix}_POOL_SIZE`),
    ...inert('pool_on_empty', NO_POOL, `${prefix}_POOL_ON_EMPTY_BEHAVIOR`),
    ...inert('duration', ONE_CALL, `${prefix}_PIPELINE_WINDOW`),
    ...inert('integer', ONE_CALL, `${prefix}_PIPELINE_LIMIT`),
    ...inert(
      'integer',
      'weir always calls all nodes of a cluster in parallel.',
      `${prefix}_CLUSTER_PIPELINE_PARALLELISM`,
    ),
    ...inert(
      'boolean',
      'weir always disconnects from a read-only Redis and looks for the master.',
      `${prefix}_CLOSE_CONNECTION_ON_READONLY_ERROR`,
    ),
    ...inert('boolean', NO_IAM, `${prefix}_AWS_IAM_AUTH`),
    ...inert('string', NO_IAM, `${prefix}_AWS_IAM_CACHE_NAME`, `${prefix}_AWS_IAM_USER_ID`),
  ];
}

export const INERT_ROWS: readonly InertRow[] = [
  ...inertRedisRows('REDIS'),
  ...inert(
    'integer',
    'keys expire when their bucket is full or their window ends, so keys do not all expire at the same time.',
    'EXPIRATION_JITTER_MAX_SECONDS',
  ),
  ...inertRedisRows('REDIS_PERSECOND'),
  ...inert(
    'string',
    'weir does not support BACKEND_TYPE=memcache.',
    'MEMCACHE_HOST_PORT',
    'MEMCACHE_MAX_IDLE_CONNS',
    'MEMCACHE_SRV',
    'MEMCACHE_SRV_REFRESH',
    'MEMCACHE_TLS',
    'MEMCACHE_TLS_CLIENT_CERT',
    'MEMCACHE_TLS_CLIENT_KEY',
    'MEMCACHE_TLS_CACERT',
    'MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION',
  ),
];

/** Returns the reasons of {@link INERT_ROWS}, each with the variables that have it, for the manual. */
export function inertByReason(): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const { name, reason } of INERT_ROWS) names.set(reason, [...(names.get(reason) ?? []), name]);
  return names;
}

/** Returns why a valid value of one of {@link INERT_ROWS} ends the start of weir, or undefined if it does not. */
export function inertRefusal({ name, type }: InertRow, value: unknown): string | undefined {
  if (name.endsWith('_AWS_IAM_AUTH') && value === true) {
    return (
      `weir does not create AWS tokens; unset this variable, and set ${name.replace('AWS_IAM_AUTH', 'AUTH_FILE')} ` +
      'to a file that contains user:token, as shown in docs/operate/redis-login.md'
    );
  }
  if (type !== 'pool_on_empty' || value === 'WAIT') return undefined;
  return (
    `with ${String(value)}, envoyproxy/ratelimit does not start either; unset this variable, and use ` +
    'REDIS_MAX_IN_FLIGHT to bound the number of limits that wait for Redis'
  );
}

/**
 * All settings, the only place of their names, types, defaults and help texts. Variables that only the reference has
 * are in {@link INERT_ROWS}. The manual's tables and `weir serve --help` are generated from these rows. Names are those
 * of the reference (envoyproxy/ratelimit) if it has the setting.
 */
const ROWS = {
  ...POLICY_SETTINGS,
  ...LISTEN_SETTINGS,
  ...STORE_SETTINGS,
  ...PER_SECOND_SETTINGS,
  ...ANSWER_SETTINGS,
  ...TELEMETRY_SETTINGS,
};

export type SettingKey = keyof typeof ROWS;

/** Parsed settings. Durations are in microseconds. */
export type Settings = { readonly [K in SettingKey]: SettingTypes[(typeof ROWS)[K]['type']] } & {
  /** Mogrifiers that USE_DOG_STATSD_MOGRIFIERS lists. Their variables have names that depend on its value. */
  readonly dogStatsdMogrifierTable: readonly Mogrifier[];
};

/** Name of a value in the environment and on the command line of `weir serve`. */
export interface Variable {
  readonly name: string;
  readonly flag: string;
}

export interface Setting extends Row, Variable {
  readonly key: SettingKey;
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
}

/** All settings, in the order of the manual. */
export const SETTINGS: readonly Setting[] = (Object.keys(ROWS) as SettingKey[]).map((key) => ({
  ...ROWS[key],
  key,
  flag: flagOf(ROWS[key].name),
}));

/** The default as it would be written. */
export function defaultOf(key: SettingKey): string {
  return ROWS[key].default;
}

/**
 * Returns whether an unset variable has the same meaning as in the reference, even if the default is written
 * differently. True for variables that only weir has.
 */
export function hasReferenceDefault({ type, default: here, max, reference }: Setting): boolean {
  if (reference === undefined) return true;
  const [ours, theirs] = [here, reference.default].map((text) => {
    const parsed = text === '' ? undefined : parseValue(type, text, max);
    return parsed?.ok ? parsed.value : text;
  });
  return isDeepStrictEqual(ours, theirs);
}

/** All variables that are accepted and ignored. */
export const INERT_VARIABLES = INERT_ROWS.map((row) => ({ ...row, flag: flagOf(row.name) }));

/** All variables of `weir serve`. */
export const VARIABLES: readonly Variable[] = [...SETTINGS, ...INERT_VARIABLES];
