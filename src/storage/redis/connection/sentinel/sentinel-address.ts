import {
  endpointName,
  type HostPort,
  type RedisAddress,
  type RedisAddressOverrides,
  readHostPort,
} from '../redis-address.js';

/** Where Sentinels listen unless their address says otherwise. */
const DEFAULT_SENTINEL_PORT = 26379;
/** More are a mistake: each of them is asked and listened to. */
export const MAX_SENTINELS = 32;
const FORM = 'write <name of the master>,<host:port of a Sentinel>,<host:port of another one>';

/**
 * Reads what REDIS_URL says with REDIS_TYPE=SENTINEL, in the form of envoyproxy/ratelimit: the name of the master as
 * the Sentinels know it, and where they are, separated by commas; without a port it is 26379. Login and TLS come from
 * `overrides`, the database is 0.
 *
 * Throws an Error that says what is wrong, and what to write instead.
 */
export function parseSentinelUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  const [masterName = '', ...entries] = url.split(',').map((part) => part.trim());
  if (url.includes('://') || url.includes('@')) {
    throw new Error(
      `Redis address: with Sentinels there are no URLs in it, and no login; ${FORM}, the login of Redis in ` +
        'REDIS_AUTH, that of the Sentinels in REDIS_SENTINEL_AUTH, and REDIS_TLS=true for TLS',
    );
  }
  if (masterName === '' || /[:\s/]/.test(masterName)) {
    throw new Error(
      `Redis address: with Sentinels it begins with the name of the master as they know it; ${FORM}`,
    );
  }
  if (entries.length === 0) {
    throw new Error(`Redis address: it names no Sentinel behind the name of the master; ${FORM}`);
  }
  if (entries.length > MAX_SENTINELS) {
    throw new Error(`Redis address: it names more than ${MAX_SENTINELS} Sentinels; name some of them`);
  }
  const sentinels = entries.map(parseSentinel);
  const { username, password, tls = false } = overrides;
  return {
    sentinel: { masterName, sentinels },
    tls,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    db: 0,
    redactedAddress: `${masterName} (Sentinels ${sentinels.map(endpointName).join(', ')})`,
  };
}

function parseSentinel(text: string, index: number): HostPort {
  const sentinel = readHostPort(text, DEFAULT_SENTINEL_PORT);
  if (sentinel === undefined) {
    throw new Error(
      `Redis address: ${JSON.stringify(text.slice(0, 100))}, the Sentinel at place ${index + 1} behind the name ` +
        'of the master, cannot be read; write host:port, or [::1]:26379',
    );
  }
  return sentinel;
}
