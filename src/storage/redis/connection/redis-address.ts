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
  readonly db?: number;
  readonly tls?: boolean;
  /**
   * Type of the address (REDIS_SOCKET_TYPE): `unix` makes it a path, even if relative. Absent: derived from the
   * address.
   */
  readonly socketType?: 'tcp' | 'unix';
}

const DEFAULT_PORT = 6379;
const FORMS =
  'use host:port, [::1]:6379, the path of a socket, redis://user:password@host:port/db, rediss:// for ' +
  'TLS, or unix:///path?db=1';

/** The user or password of a URL contains a reserved character. */
export class RedisUrlLoginError extends Error {
  override readonly name = 'RedisUrlLoginError';

  constructor() {
    super(
      'Redis address: the user or the password contains a character with a special meaning in URLs; ' +
        'percent-encode this character (/ is %2F, ? is %3F, # is %23, % is %25, "," is %2C)',
    );
  }
}

/** Query parameters that a URL may have. */
const PARAMETERS: readonly string[] = ['db', 'username', 'password'];

type Parts = Omit<RedisAddress, 'redactedAddress' | 'tls' | 'db'> & { tls: boolean; db: number };

/**
 * Parses a Redis address: `host:port`, `host`, `[::1]:6379`, the path of a socket (which begins with `/` or `.`), or a
 * `redis://`, `rediss://` (TLS) or `unix://` URL. User and password of a URL are percent-decoded.
 *
 * Throws an Error with the problem, which never contains a password; a {@link RedisUrlLoginError} if the login is the
 * problem.
 */
export function parseRedisUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  const { socketType, ...given } = overrides;
  const parts = { ...parseAs(url.trim(), socketType), ...defined(given) };
  if (parts.path !== undefined && parts.tls) {
    throw new Error(
      'Redis address: a Unix domain socket does not support TLS; disable TLS, or use rediss://host:port',
    );
  }
  if (!Number.isSafeInteger(parts.db) || parts.db < 0) {
    throw new Error('Redis address: the database must be a whole number of 0 or more');
  }
  return { ...parts, redactedAddress: redacted(parts) };
}

function parseAs(url: string, socketType: 'tcp' | 'unix' | undefined): Parts {
  const scheme = schemeOf(url);
  if (socketType === 'unix') {
    if (scheme !== undefined && scheme !== 'unix') {
      throw new Error(
        `Redis address: the socket type is unix, but a ${scheme}:// URL is not a Unix domain socket; ` +
          'use the path of a socket, or set the socket type to tcp',
      );
    }
    return scheme === undefined && url !== '' ? { path: url, tls: false, db: 0 } : parse(url);
  }
  const parts = parse(url);
  if (socketType === 'tcp' && parts.path !== undefined) {
    throw new Error(
      'Redis address: the address is a Unix domain socket, but the socket type is tcp; use host:port, ' +
        'or set the socket type to unix',
    );
  }
  return parts;
}

function schemeOf(url: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
}

function parse(url: string): Parts {
  if (url === '') throw new Error(`Redis address: the address is empty; ${FORMS}`);
  if (/^(["']).*\1$/s.test(url))
    throw new Error('Redis address: the address is in quotes; remove the quotes');
  if (url.includes('${')) {
    throw new Error(
      'Redis address: the address contains "${", so a variable was not substituted; correct the ' +
        'substitution, or write the address itself',
    );
  }
  if (hasBrokenLogin(url)) throw new RedisUrlLoginError();
  if (url.includes(',')) {
    throw new Error(
      'Redis address: the value contains several addresses; for a Redis Cluster, set the type to ' +
        'CLUSTER. For Sentinels, set the type to SENTINEL, and begin the value with the name of the master',
    );
  }
  if (url.startsWith('/') || url.startsWith('.')) return { path: url, tls: false, db: 0 };
  const scheme = schemeOf(url);
  if (scheme === undefined) return parseHostPort(url);
  if (scheme === 'unix') return parseUnix(url);
  if (scheme === 'redis' || scheme === 'rediss') return parseTcp(url, scheme === 'rediss');
  throw new Error(`Redis address: unknown scheme ${JSON.stringify(`${scheme}://`)}; ${FORMS}`);
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

/** A host and its port; an IPv6 address without brackets. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/**
 * Parses `host:port` or `[::1]:6379`; `defaultPort` applies without a port. Returns undefined for anything else. Throws
 * an Error that names the valid ports.
 */
export function readHostPort(text: string, defaultPort = DEFAULT_PORT): HostPort | undefined {
  const match = /^(?:\[([0-9a-f:.%]+)\]|([^\s:@/?#[\]]+))(?::(\d+))?$/i.exec(text);
  const host = match?.[1] ?? match?.[2];
  return host === undefined ? undefined : { host, port: parsePort(match?.[3], defaultPort) };
}

/** Formats `host:port`, with an IPv6 address in brackets. */
export function endpointName({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function parseHostPort(text: string): Parts {
  const found = readHostPort(text);
  if (found === undefined) {
    const [plain] = /^[a-z0-9.-]+:\d{1,5}\/\d{1,3}$/i.exec(text) ?? [];
    if (plain !== undefined) {
      throw new Error(`Redis address: only a URL can contain a database; write redis://${plain}`);
    }
    // An address that cannot be parsed may contain a password, so the error does not repeat it.
    throw new Error(`Redis address: the address is invalid; ${FORMS}`);
  }
  return { ...found, tls: false, db: 0 };
}

function parseUnix(url: string): Parts {
  const rest = url.slice('unix://'.length);
  const query = rest.indexOf('?');
  const before = query < 0 ? rest : rest.slice(0, query);
  const at = before.lastIndexOf('@');
  const path = decode(before.slice(at + 1), 'the path');
  if (path === '') throw new Error('Redis address: unix:// requires a path; write unix:///path/of/socket');
  const params = new URLSearchParams(query < 0 ? '' : rest.slice(query + 1));
  const user = at < 0 ? '' : before.slice(0, at);
  const colon = user.indexOf(':');
  return {
    path,
    tls: false,
    db: database(undefined, params),
    ...queryLogin(params),
    ...credentials(colon < 0 ? user : user.slice(0, colon), colon < 0 ? '' : user.slice(colon + 1)),
  };
}

function parseTcp(url: string, tls: boolean): Parts {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new Error(`Redis address: the address is not a valid URL; ${FORMS}`);
  }
  if (parsed.hostname === '') throw new Error(`Redis address: the host is missing; ${FORMS}`);
  const db = parsed.pathname.replace(/^\//, '');
  return {
    host: decode(parsed.hostname.replace(/^\[(.*)\]$/, '$1'), 'the host'),
    port: parsePort(parsed.port === '' ? undefined : parsed.port),
    tls,
    db: database(db === '' ? undefined : db, parsed.searchParams),
    ...queryLogin(parsed.searchParams),
    ...credentials(parsed.username, parsed.password),
  };
}

/** Parses a port; `defaultPort` applies to an empty string. Throws an Error that names the valid ports. */
function parsePort(text: string | undefined, defaultPort = DEFAULT_PORT): number {
  if (text === undefined) return defaultPort;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1 || value > 65535) {
    throw new Error('Redis address: the port must be from 1 to 65535');
  }
  return value;
}

function database(path: string | undefined, params: URLSearchParams): number {
  for (const name of params.keys()) {
    if (!PARAMETERS.includes(name)) {
      throw new Error(
        `Redis address: unknown parameter ${shownName(name, params)}; the known parameters are ` +
          `${PARAMETERS.join(', ')}`,
      );
    }
  }
  const text = params.get('db') ?? path ?? '0';
  if (!/^\d{1,9}$/.test(text)) {
    throw new Error('Redis address: the database must be a whole number, as in redis://host:6379/1');
  }
  return Number(text);
}

/** Returns the name of a parameter for errors, unless it may be part of a password that is not percent-encoded. */
function shownName(name: string, params: URLSearchParams): string {
  return /@|%40/.test(params.toString()) ? 'after the "?"' : JSON.stringify(name.slice(0, 40));
}

function credentials(user: string, password: string): { username?: string; password?: string } {
  const username = decode(user, 'the user');
  const secret = decode(password, 'the password');
  return {
    ...(username === '' ? {} : { username }),
    ...(secret === '' ? {} : { password: secret }),
  };
}

/** Returns the login of `redis://host?username=u&password=p`; a login before the host takes precedence. */
function queryLogin(params: URLSearchParams): { username?: string; password?: string } {
  const username = params.get('username') ?? '';
  const password = params.get('password') ?? '';
  return {
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
  };
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`Redis address: ${what} has a "%" that is not followed by two hex digits; write %25`);
  }
}

function redacted(parts: Parts): string {
  const db = parts.db === 0 ? '' : String(parts.db);
  if (parts.path !== undefined) return `unix://${parts.path}${db === '' ? '' : `?db=${db}`}`;
  const { host = '', port = DEFAULT_PORT } = parts;
  return `${parts.tls ? 'rediss' : 'redis'}://${endpointName({ host, port })}${db === '' ? '' : `/${db}`}`;
}

function defined<T extends object>(overrides: T): Partial<T> {
  const entries = Object.entries(overrides).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Partial<T>;
}
