/** Where a Redis listens: a host and a port, or the path of a Unix domain socket. */
export type RedisEndpoint = HostPort | { readonly path: string };

/** Who knows where the master of a Redis is (REDIS_TYPE=SENTINEL). */
export interface SentinelAddress {
  /** What the Sentinels call the master. */
  readonly masterName: string;
  readonly sentinels: readonly HostPort[];
}

/** Where a Redis is and how to log in. */
export interface RedisAddress {
  /** Set in place of host and port. */
  readonly sentinel?: SentinelAddress;
  /** Whether a proxy that shards is there (REDIS_TYPE=PROXY). */
  readonly proxy?: boolean;
  /** Set in place of host and port: some nodes of a Redis Cluster, which know the others (REDIS_TYPE=CLUSTER). */
  readonly cluster?: readonly HostPort[];
  /** Host name or IP address without brackets; absent for a socket. */
  readonly host?: string;
  readonly port?: number;
  /** Path of a Unix domain socket; absent for TCP. */
  readonly path?: string;
  readonly tls: boolean;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db: number;
  /** The address as logs and errors may show it: no user, no password. */
  readonly redactedAddress: string;
}

/** Settings that stand beside the URL and beat what it says. */
export interface RedisAddressOverrides {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db?: number;
  readonly tls?: boolean;
  /**
   * How the address is meant (REDIS_SOCKET_TYPE): `unix` makes it a path, relative ones too. Absent: what it looks
   * like.
   */
  readonly socketType?: 'tcp' | 'unix';
}

const DEFAULT_PORT = 6379;
const FORMS =
  'use host:port, [::1]:6379, the path of a socket, redis://user:password@host:port/db, rediss:// for ' +
  'TLS, or unix:///path?db=1';

/** User or password of a URL hold a character that means something else there. */
export class RedisUrlLoginError extends Error {
  override readonly name = 'RedisUrlLoginError';

  constructor() {
    super(
      'Redis address: the user or the password holds a character that ends it in a URL; percent-encode them ' +
        '(/ is %2F, ? is %3F, # is %23, % is %25, "," is %2C)',
    );
  }
}

/** What may stand behind the `?` of a URL. */
const PARAMETERS: readonly string[] = ['db', 'username', 'password'];

type Parts = Omit<RedisAddress, 'redactedAddress' | 'tls' | 'db'> & { tls: boolean; db: number };

/**
 * Reads a Redis address: `host:port`, `host`, `[::1]:6379`, the path of a socket (it begins with `/` or `.`),
 * `redis://`, `rediss://` (TLS) or `unix://` URL. User and password of a URL are percent-decoded.
 *
 * Throws an Error that says what is wrong and never shows a password; a {@link RedisUrlLoginError} where it is the
 * login.
 */
export function parseRedisUrl(url: string, overrides: RedisAddressOverrides = {}): RedisAddress {
  const { socketType, ...given } = overrides;
  const parts = { ...parseAs(url.trim(), socketType), ...defined(given) };
  if (parts.path !== undefined && parts.tls) {
    throw new Error('Redis address: a Unix domain socket has no TLS; drop TLS or use rediss://host:port');
  }
  if (!Number.isSafeInteger(parts.db) || parts.db < 0) {
    throw new Error('Redis address: the database must be a whole number from 0');
  }
  return { ...parts, redactedAddress: redacted(parts) };
}

function parseAs(url: string, socketType: 'tcp' | 'unix' | undefined): Parts {
  const scheme = schemeOf(url);
  if (socketType === 'unix') {
    if (scheme !== undefined && scheme !== 'unix') {
      throw new Error(
        `Redis address: a ${scheme}:// URL is no Unix domain socket, but the socket type is unix`,
      );
    }
    return scheme === undefined && url !== '' ? { path: url, tls: false, db: 0 } : parse(url);
  }
  const parts = parse(url);
  if (socketType === 'tcp' && parts.path !== undefined) {
    throw new Error(
      'Redis address: it names a Unix domain socket, but the socket type is tcp; write host:port',
    );
  }
  return parts;
}

function schemeOf(url: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
}

function parse(url: string): Parts {
  if (url === '') throw new Error(`Redis address is empty; ${FORMS}`);
  if (/^(["']).*\1$/s.test(url)) throw new Error('Redis address: it stands in quotes; remove them');
  if (url.includes('${')) {
    throw new Error(
      'Redis address: "${" begins a variable that nothing has filled in; write the address itself',
    );
  }
  if (hasBrokenLogin(url)) throw new RedisUrlLoginError();
  if (url.includes(',')) {
    throw new Error(
      'Redis address: it names several; name one Redis, or, for nodes of a Redis Cluster, set the type to CLUSTER, ' +
        'or, for Sentinels, set it to SENTINEL and write the name of the master before their addresses',
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
 * Whether a `/`, `?` or `#` of user or password cuts them off: the `@` that ends them comes after it then. A comma in
 * them would part several addresses. Only a parameter may hold an `@`, where the login stands that has none before it.
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
 * Reads `host:port`, or `[::1]:6379`; `usual` is the port where none is named. Undefined for anything else. Throws an
 * Error that says what ports there are.
 */
export function readHostPort(text: string, defaultPort = DEFAULT_PORT): HostPort | undefined {
  const match = /^(?:\[([0-9a-f:.%]+)\]|([^\s:@/?#[\]]+))(?::(\d+))?$/i.exec(text);
  const host = match?.[1] ?? match?.[2];
  return host === undefined ? undefined : { host, port: parsePort(match?.[3], defaultPort) };
}

/** `host:port`, an IPv6 address in brackets. */
export function endpointName({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function parseHostPort(text: string): Parts {
  const found = readHostPort(text);
  if (found === undefined) {
    const [plain] = /^[a-z0-9.-]+:\d{1,5}\/\d{1,3}$/i.exec(text) ?? [];
    if (plain !== undefined) {
      throw new Error(`Redis address: a database needs the form of a URL; write redis://${plain}`);
    }
    // What cannot be read may hold a password: it is not repeated.
    throw new Error(`Redis address cannot be read; ${FORMS}`);
  }
  return { ...found, tls: false, db: 0 };
}

function parseUnix(url: string): Parts {
  const rest = url.slice('unix://'.length);
  const query = rest.indexOf('?');
  const before = query < 0 ? rest : rest.slice(0, query);
  const at = before.lastIndexOf('@');
  const path = decode(before.slice(at + 1), 'the path');
  if (path === '') throw new Error('Redis address: unix:// names no path; write unix:///path/of/socket');
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
    throw new Error(`Redis address cannot be read as a URL; ${FORMS}`);
  }
  if (parsed.hostname === '') throw new Error(`Redis address names no host; ${FORMS}`);
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

/** A port from its digits; `usual` where there are none. Throws an Error that says what is allowed. */
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
        `Redis address: unknown parameter ${shownName(name, params)}; known are ${PARAMETERS.join(', ')}`,
      );
    }
  }
  const text = params.get('db') ?? path ?? '0';
  if (!/^\d{1,9}$/.test(text)) {
    throw new Error('Redis address: the database must be a whole number, as in redis://host:6379/1');
  }
  return Number(text);
}

/** Behind the `?` of a password that is not percent-encoded, and before its `@`, stand parts of it. */
function shownName(name: string, params: URLSearchParams): string {
  return /@|%40/.test(params.toString()) ? 'behind the "?"' : JSON.stringify(name.slice(0, 40));
}

function credentials(user: string, password: string): { username?: string; password?: string } {
  const username = decode(user, 'the user');
  const secret = decode(password, 'the password');
  return {
    ...(username === '' ? {} : { username }),
    ...(secret === '' ? {} : { password: secret }),
  };
}

/** The login of `redis://host?username=u&password=p`, which what stands before the host beats. */
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
