import {
  endpointName,
  type HostPort,
  type RedisAddress,
  type RedisAddressOverrides,
  readHostPort,
} from '../connection/redis-address.js';

/** More are a mistake: a few are enough to find all others by. */
export const MAX_NAMED_NODES = 32;
const FORM = 'write <host:port of a node>,<host:port of another one>';

/**
 * Reads what REDIS_URL says with REDIS_TYPE=CLUSTER, in the form of envoyproxy/ratelimit: where some nodes are,
 * separated by commas; without a port it is 6379. Login and TLS come from `overrides`, the database is 0.
 *
 * Throws an Error that says what is wrong, and what to write instead.
 */
export function parseClusterUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  const entries = url.split(',').map((part) => part.trim());
  if (url.includes('://') || url.includes('@')) {
    throw new Error(
      `Redis address: with a cluster there are no URLs in it, and no login; ${FORM}, the login in REDIS_AUTH, and ` +
        'REDIS_TLS=true for TLS',
    );
  }
  if (entries.length > MAX_NAMED_NODES) {
    throw new Error(
      `Redis address: it names more than ${MAX_NAMED_NODES} nodes; name some of them, which know the others`,
    );
  }
  const cluster = entries.map(parseNode);
  const { username, password, tls = false } = overrides;
  return {
    cluster,
    tls,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    db: 0,
    redactedAddress: `cluster ${cluster.map(endpointName).join(', ')}`,
  };
}

function parseNode(text: string, index: number): HostPort {
  const node = readHostPort(text);
  if (node === undefined) {
    throw new Error(
      `Redis address: ${JSON.stringify(text.slice(0, 100))}, the node at place ${index + 1}, cannot be read; write ` +
        'host:port, or [::1]:6379',
    );
  }
  return node;
}
