import type { RedisLogin } from '../../storage/redis/connection/connection-options.js';
import {
  parseClusterUrl,
  parseRedisUrl,
  parseSentinelUrl,
  type RedisAddress,
} from '../../storage/redis/connection/redis-address.js';
import type { Settings } from './settings-table.js';
import type { RefusedSetting } from './settings-values.js';

/** Prefix of the variables of one Redis. */
export type RedisPrefix = 'REDIS' | 'REDIS_PERSECOND';

export type RedisInstance = ReturnType<typeof redisInstance>;

const KEYS = { REDIS: 'redis', REDIS_PERSECOND: 'perSecond' } as const;

/** Returns the settings whose variables start with `prefix`, whether or not this Redis is in use. */
export function redisInstance(settings: Settings, prefix: RedisPrefix) {
  const key = KEYS[prefix];
  return {
    prefix,
    url: settings[`${key}Url`],
    auth: settings[`${key}Auth`],
    authFile: settings[`${key}AuthFile`],
    sentinelAuth: settings[`${key}SentinelAuth`],
    /** Microseconds; undefined if the second Redis uses the timeout of the first. */
    timeout: settings[`${key}Timeout`],
    socketType: settings[`${key}SocketType`],
    type: settings[`${key}Type`],
    tls: settings[`${key}Tls`],
  };
}

/**
 * Returns the address with its login, or the errors of the variables that define it. Errors never contain a password.
 */
export function readRedisAddress(
  { prefix, url, socketType, tls, type }: RedisInstance,
  login: RedisLogin = {},
): RedisAddress | RefusedSetting {
  try {
    const overrides = { ...login, tls: tls || undefined };
    if (type === 'sentinel') return parseSentinelUrl(url, overrides);
    if (type === 'cluster') return parseClusterUrl(url, overrides);
    return parseRedisUrl(url, overrides, socketType || undefined);
  } catch (error) {
    const variables = [
      `${prefix}_URL`,
      ...(type === 'single' ? [] : [`${prefix}_TYPE`]),
      ...(socketType === '' || type !== 'single' ? [] : [`${prefix}_SOCKET_TYPE`]),
      ...(tls ? [`${prefix}_TLS`] : []),
    ];
    return { variables, sentence: (error as Error).message.replaceAll('REDIS_', `${prefix}_`) };
  }
}
