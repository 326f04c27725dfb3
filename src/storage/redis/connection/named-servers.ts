import { shownStart } from '../../../runtime/shown-address.js';
import {
  endpointName,
  type HostPort,
  type RedisAddress,
  type RedisAddressOverrides,
  readHostPort,
} from './redis-address.js';

/**
 * Maximum number of servers in a list. A few nodes are enough to find the others, and each Sentinel has a connection. A
 * longer list is probably a mistake.
 */
export const MAX_SERVERS = 32;
const CLUSTER_PORT = 6379;
const SENTINEL_PORT = 26379;
const CLUSTER_FORM = 'write <host:port of a node>,<host:port of another node>';
const SENTINEL_FORM = 'write <name of the master>,<host:port of a Sentinel>,<host:port of another Sentinel>';

/** Format of a list of servers, and its names in errors. */
interface ServerList {
  readonly port: number;
  /** Plural name of the servers, for an error about too many of them. */
  readonly tooMany: string;
  /** Name of one server. */
  readonly name: string;
  /** Text after the position of a server. */
  readonly suffix: string;
}

/**
 * Parses REDIS_URL for REDIS_TYPE=CLUSTER, in the format of envoyproxy/ratelimit: addresses of some nodes, separated by
 * commas, with the default port 6379. Login and TLS come from `overrides`, and the database is 0.
 *
 * Throws an Error with the problem and the correct format.
 */
export function parseClusterUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  const entries = entriesOf(url);
  refuseUrl(
    url,
    `a cluster address must not contain URLs or a login; ${CLUSTER_FORM}, and set REDIS_AUTH to the login`,
  );
  const cluster = serversOf(entries, {
    port: CLUSTER_PORT,
    tooMany: 'nodes; list a few nodes, and weir finds the others',
    name: 'node',
    suffix: '',
  });
  const redactedAddress = `cluster ${cluster.map(endpointName).join(', ')}`;
  return { cluster, ...loginOf(overrides), redactedAddress };
}

/**
 * Parses REDIS_URL for REDIS_TYPE=SENTINEL: the name of the master in the Sentinels, and their addresses, with the
 * default port 26379.
 */
export function parseSentinelUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  const [masterName = '', ...entries] = entriesOf(url);
  refuseUrl(
    url,
    `a Sentinel address must not contain URLs or a login; ${SENTINEL_FORM}, and set REDIS_AUTH to the ` +
      'login for Redis and REDIS_SENTINEL_AUTH to the login for the Sentinels',
  );
  if (masterName === '' || /[:\s/]/.test(masterName)) {
    throw wrong(`a Sentinel address must begin with the name of the master; ${SENTINEL_FORM}`);
  }
  if (entries.length === 0) {
    throw wrong(`a Sentinel address must contain a Sentinel after the name of the master; ${SENTINEL_FORM}`);
  }
  const sentinels = serversOf(entries, {
    port: SENTINEL_PORT,
    tooMany: 'Sentinels; list fewer Sentinels',
    name: 'Sentinel',
    suffix: ' after the name of the master',
  });
  const redactedAddress = `${masterName} (Sentinels ${sentinels.map(endpointName).join(', ')})`;
  return { sentinel: { masterName, sentinels }, ...loginOf(overrides), redactedAddress };
}

function entriesOf(url: string): string[] {
  return url.split(',').map((part) => part.trim());
}

function refuseUrl(url: string, why: string): void {
  if (url.includes('://') || url.includes('@')) throw wrong(`${why}; for TLS, set REDIS_TLS=true`);
}

function serversOf(
  entries: readonly string[],
  { port, tooMany: many, name: one, suffix: where }: ServerList,
): HostPort[] {
  if (entries.length > MAX_SERVERS) throw wrong(`the list contains more than ${MAX_SERVERS} ${many}`);
  return entries.map((text, index) => {
    const server = readHostPort(text, port);
    if (server !== undefined) return server;
    const what = `${JSON.stringify(shownStart(text, 100))}, ${one} number ${index + 1}${where},`;
    throw wrong(`${what} is not a valid address; write host:port, or [::1]:${port}`);
  });
}

function loginOf({ username, password, tls = false }: RedisAddressOverrides) {
  return {
    tls,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    db: 0,
  };
}

function wrong(what: string): Error {
  return new Error(`Redis address: ${what}`);
}
