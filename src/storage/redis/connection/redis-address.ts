import { safePrefix } from '../../../runtime/shown-address.js';

/** A host and its port; an IPv6 address without brackets. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Address of a Redis: host and port, or the path of a Unix domain socket. */
export type RedisEndpoint = HostPort | { readonly path: string };

/** The Sentinels that know the master of a Redis (REDIS_TYPE=SENTINEL). */
export interface SentinelAddress {
  /** Name of the master in the Sentinels. */
  readonly masterName: string;
  readonly sentinels: readonly HostPort[];
}

/** Address and login of a Redis. */
export interface RedisAddress {
  /** Set instead of host and port. */
  readonly sentinel?: SentinelAddress;
  /** Set instead of host and port: some nodes of a Redis Cluster, which know the others (REDIS_TYPE=CLUSTER). */
  readonly cluster?: readonly HostPort[];
  /** Host name, or IP address without brackets; absent for a socket. */
  readonly host?: string;
  readonly port?: number;
  /** Path of a Unix domain socket; absent for TCP. */
  readonly path?: string;
  readonly tls: boolean;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db: number;
  /** The address for logs and errors, without user and password. */
  readonly redactedAddress: string;
}

/** Settings that take precedence over the URL. */
export interface RedisAddressOverrides {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: boolean | undefined;
}

const DEFAULT_PORT = 6379;
const SENTINEL_PORT = 26379;
const FORMS =
  'use host:port, [::1]:6379, the path of a socket, redis://user:password@host:port/db, rediss:// for ' +
  'TLS, or unix:///path?db=1';
const CLUSTER_FORM = 'write <host:port of a node>,<host:port of another node>';
const SENTINEL_FORM = 'write <name of the master>,<host:port of a Sentinel>,<host:port of another Sentinel>';
/** Query parameters that a URL may have. */
const PARAMETERS: readonly string[] = ['db', 'username', 'password'];

type Parts = Omit<RedisAddress, 'redactedAddress'>;

/**
 * Parses a Redis address: `host:port`, `host`, `[::1]:6379`, the path of a socket (which begins with `/` or `.`), or a
 * `redis://`, `rediss://` (TLS) or `unix://` URL. User and password of a URL are percent-decoded.
 *
 * `socketType` is the type of the address (REDIS_SOCKET_TYPE): `unix` makes it a path, even if relative. Without it,
 * the address determines the type.
 *
 * Throws an Error with the problem, which never contains a password. Messages name the variables of the main Redis.
 */
export function parseRedisUrl(
  url: string,
  overrides: RedisAddressOverrides = {},
  socketType?: 'tcp' | 'unix',
): RedisAddress {
  const parsed = parse(url.trim(), socketType === 'unix');
  if (socketType === 'unix' && parsed.path === undefined) {
    const scheme = parsed.tls ? 'rediss' : 'redis';
    throw wrong(
      `the socket type is unix, but a ${scheme}:// URL is not a Unix domain socket; ` +
        'use the path of a socket, or set the socket type to tcp',
    );
  }
  if (socketType === 'tcp' && parsed.path !== undefined) {
    throw wrong(
      'the address is a Unix domain socket, but the socket type is tcp; use host:port, or set the socket type to unix',
    );
  }
  const parts = { ...parsed, ...defined(overrides) };
  if (parts.path !== undefined && parts.tls)
    throw wrong('a Unix domain socket does not support TLS; disable TLS, or use rediss://host:port');
  return { ...parts, redactedAddress: redacted(parts) };
}

/**
 * Parses REDIS_URL for REDIS_TYPE=CLUSTER, in the format of envoyproxy/ratelimit: addresses of some nodes, separated by
 * commas, with the default port 6379. Login and TLS come from `overrides`, and the database is 0.
 *
 * Throws an Error with the problem and the correct format.
 */
export function parseClusterUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  refuseLogin(
    url,
    `a cluster address must not contain URLs or a login; ${CLUSTER_FORM}, and set REDIS_AUTH to the login`,
  );
  const cluster = url.split(',').map((text, i) => listed(text, `node number ${i + 1}`, DEFAULT_PORT));
  const redactedAddress = `cluster ${cluster.map(endpointName).join(', ')}`;
  return { tls: false, ...defined(overrides), cluster, db: 0, redactedAddress };
}

/**
 * Parses REDIS_URL for REDIS_TYPE=SENTINEL: the name of the master in the Sentinels, and their addresses, with the
 * default port 26379.
 */
export function parseSentinelUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  refuseLogin(
    url,
    `a Sentinel address must not contain URLs or a login; ${SENTINEL_FORM}, and set REDIS_AUTH to the login for ` +
      'Redis and REDIS_SENTINEL_AUTH to the login for the Sentinels',
  );
  const [name = '', ...rest] = url.split(',');
  const masterName = name.trim();
  if (masterName === '' || /[:\s/]/.test(masterName))
    throw wrong(`a Sentinel address must begin with the name of the master; ${SENTINEL_FORM}`);
  if (rest.length === 0)
    throw wrong(`a Sentinel address must contain a Sentinel after the name of the master; ${SENTINEL_FORM}`);
  const sentinels = rest.map((text, i) =>
    listed(text, `Sentinel number ${i + 1} after the name of the master`, SENTINEL_PORT),
  );
  const redactedAddress = `${masterName} (Sentinels ${sentinels.map(endpointName).join(', ')})`;
  return { tls: false, ...defined(overrides), sentinel: { masterName, sentinels }, db: 0, redactedAddress };
}

/** Formats `host:port`, with an IPv6 address in brackets. */
export function endpointName({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function parse(url: string, isSocket: boolean): Parts {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  if (url === '') throw wrong(`the address is empty; ${FORMS}`);
  if (isSocket && scheme === undefined) return { path: url, tls: false, db: 0 };
  if (/^(["']).*\1$/s.test(url)) throw wrong('the address is in quotes; remove the quotes');
  if (url.includes('${')) {
    throw wrong(
      'the address contains "${", so a variable was not substituted; correct the substitution, or write the address ' +
        'itself',
    );
  }
  if (hasBrokenLogin(url)) {
    throw wrong(
      'the user or the password contains a character with a special meaning in URLs; percent-encode this character ' +
        '(/ is %2F, ? is %3F, # is %23, % is %25, "," is %2C), or remove the login from the URL and set REDIS_AUTH ' +
        'to the password or to user:password, without encoding',
    );
  }
  if (url.includes(',')) {
    throw wrong(
      'the value contains several addresses; for a Redis Cluster, set the type to CLUSTER. For Sentinels, set the ' +
        'type to SENTINEL, and begin the value with the name of the master',
    );
  }
  if (url.startsWith('/') || url.startsWith('.')) return { path: url, tls: false, db: 0 };
  if (scheme === 'unix' || scheme === 'redis' || scheme === 'rediss') return parseUrl(url, scheme);
  if (scheme !== undefined) throw wrong(`unknown scheme ${JSON.stringify(`${scheme}://`)}; ${FORMS}`);
  const [plain] = /^[a-z0-9.-]+:\d{1,5}\/\d{1,3}$/i.exec(url) ?? [];
  if (plain !== undefined) throw wrong(`only a URL can contain a database; write redis://${plain}`);
  const found = readHostPort(url, DEFAULT_PORT);
  // An address that cannot be parsed may contain a password, so the error does not repeat it.
  if (found === undefined) throw wrong(`the address is invalid; ${FORMS}`);
  return { ...found, tls: false, db: 0 };
}

/**
 * Returns whether the user or password contains an unencoded character that ends it early. In such a URL, the last `@`
 * follows a `/`, `?` or `#`. A comma would separate addresses. An `@` in a parameter is valid only if the authority is
 * a plain host and port.
 */
function hasBrokenLogin(url: string): boolean {
  const [, authority = '', rest = ''] = /^rediss?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  const [path = '', query = ''] = rest.split(/\?(.*)/s);
  if (url.includes('#') || path.includes('@')) return rest !== '';
  const login = authority.slice(0, Math.max(authority.lastIndexOf('@'), 0));
  return login.includes(',') || (query.includes('@') && !/^(?:[^:]*|\[.*\])(?::\d+)?$/.test(authority));
}

function parseUrl(url: string, scheme: 'unix' | 'redis' | 'rediss'): Parts {
  const isSocket = scheme === 'unix';
  if (isSocket && !/^unix:\/\/(?:[^/?]*@)?\/./i.test(url))
    throw wrong('unix:// requires a path; write unix:///path/of/socket');
  // Only a URL with a host may contain a login.
  const text = isSocket ? url.replace(/^unix:\/\/([^/?]*@)?/i, 'redis://$1socket') : url;
  if (!URL.canParse(text)) throw wrong(`the address is not a valid URL; ${FORMS}`);
  const { hostname, port, pathname, username, password, searchParams } = new URL(text);
  if (hostname === '') throw wrong(`the host is missing; ${FORMS}`);
  const path = isSocket ? '' : pathname.slice(1);
  return {
    ...(isSocket
      ? { path: decode(pathname, 'the path') }
      : {
          host: decode(hostname.replace(/^\[(.*)\]$/, '$1'), 'the host'),
          port: readPort(port, DEFAULT_PORT),
        }),
    tls: scheme === 'rediss',
    db: readDatabase(path, searchParams),
    ...login(searchParams.get('username') ?? '', searchParams.get('password') ?? ''),
    // A login before the host takes precedence.
    ...login(decode(username, 'the user'), decode(password, 'the password')),
  };
}

function login(username: string, password: string): { username?: string; password?: string } {
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function readDatabase(path: string, params: URLSearchParams): number {
  for (const name of params.keys()) {
    if (PARAMETERS.includes(name)) continue;
    // The name may be part of a password that is not percent-encoded.
    const shown = /@|%40/.test(params.toString()) ? 'after the "?"' : JSON.stringify(name.slice(0, 40));
    throw wrong(`unknown parameter ${shown}; the known parameters are ${PARAMETERS.join(', ')}`);
  }
  const text = params.get('db') ?? (path || '0');
  if (!/^\d{1,9}$/.test(text)) throw wrong('the database must be a whole number, as in redis://host:6379/1');
  return Number(text);
}

/** Parses `host:port` or `[::1]:6379`. Returns undefined for anything else. */
function readHostPort(text: string, defaultPort: number): HostPort | undefined {
  const match = /^(?:\[([0-9a-f:.%]+)\]|([^\s:@/?#[\]]+))(?::(\d+))?$/i.exec(text);
  const host = match?.[1] ?? match?.[2];
  return host === undefined ? undefined : { host, port: readPort(match?.[3] ?? '', defaultPort) };
}

function readPort(text: string, defaultPort: number): number {
  if (text === '') return defaultPort;
  const port = Number(text);
  if (port < 1 || port > 65535) throw wrong('the port must be from 1 to 65535');
  return port;
}

/** Parses one of the servers in a list. */
function listed(text: string, name: string, defaultPort: number): HostPort {
  const server = readHostPort(text.trim(), defaultPort);
  if (server !== undefined) return server;
  const shown = JSON.stringify(safePrefix(text.trim(), 100));
  throw wrong(`${shown}, ${name}, is not a valid address; write host:port, or [::1]:${defaultPort}`);
}

function refuseLogin(url: string, why: string): void {
  if (url.includes('://') || url.includes('@')) throw wrong(`${why}; for TLS, set REDIS_TLS=true`);
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(`${what} has a "%" that is not followed by two hex digits; write %25`);
  }
}

function redacted({ path, host = '', port = DEFAULT_PORT, tls, db }: Parts): string {
  if (path !== undefined) return `unix://${path}${db === 0 ? '' : `?db=${db}`}`;
  return `${tls ? 'rediss' : 'redis'}://${endpointName({ host, port })}${db === 0 ? '' : `/${db}`}`;
}

function defined<T extends object>(overrides: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  const entries = Object.entries(overrides).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]?: NonNullable<T[Key]> };
}

function wrong(what: string): Error {
  return new Error(`Redis address: ${what}`);
}
