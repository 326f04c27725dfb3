import { parseRedisUrl, type RedisAddress } from '../../storage/redis/redis-address.js';
import type { Settings } from './settings-table.js';

/** What says where one Redis is; `variable` names its settings, as in `REDIS_URL`. */
export interface RedisPlace {
  readonly variable: 'REDIS' | 'REDIS_PERSECOND';
  readonly url: string;
  readonly socketType: Settings['redisSocketType'];
  readonly tls: boolean;
}

/** The address with its login; a line that names the variables instead where they make none. Never shows a password. */
export function readRedisAddress(
  { variable, url, socketType, tls }: RedisPlace,
  login: { readonly username?: string; readonly password?: string } = {},
): RedisAddress | string {
  try {
    return parseRedisUrl(url, {
      ...login,
      ...(tls ? { tls } : {}),
      ...(socketType === '' ? {} : { socketType }),
    });
  } catch (error) {
    const names = [
      `${variable}_URL`,
      ...(socketType === '' ? [] : [`${variable}_SOCKET_TYPE`]),
      ...(tls ? [`${variable}_TLS`] : []),
    ];
    return `${names.join(', ')}: ${(error as Error).message}`;
  }
}
