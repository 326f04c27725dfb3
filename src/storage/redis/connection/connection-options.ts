import type { ConnectionOptions } from 'node:tls';
import type { StoreFault } from '../../../limiter/failure-policy.js';
import type { BackOffOptions } from '../../../runtime/timers.js';
import type { RedisAddress } from './redis-address.js';

/** Logs each change of state once, without passwords. */
export type RedisLog = (level: 'info' | 'warn' | 'error', message: string) => void;

/** Sends one command whose reply is a string. Rejects with Redis's error, or if the connection is lost. */
export type SendCommand = (name: string, args: readonly string[]) => Promise<Buffer>;

/** Pauses between connection attempts. */
export type RetryPauses = Pick<BackOffOptions, 'initialMs' | 'maxMs'>;

/** Settings of one Redis server, passed unchanged from the store to its connection. */
export interface RedisServerOptions {
  readonly address: RedisAddress;
  /** TLS settings, used with `address.tls`. */
  readonly tls?: ConnectionOptions | undefined;
  /** Source of the login, instead of `address`. */
  readonly login?: LoginSource | undefined;
  /** Login of the Sentinels themselves. */
  readonly sentinelLogin?: RedisLogin | undefined;
  /** Prefix of the variables in messages: `REDIS` (the default) for REDIS_URL, REDIS_AUTH and REDIS_TLS. */
  readonly prefix?: string | undefined;
  /** Pauses between attempts before the first connection; default {@link DEFAULT_RETRY}. */
  readonly startup?: RetryPauses | undefined;
  /**
   * Maximum wait for a reply, in microseconds (REDIS_TIMEOUT). If Redis sends no reply for longer, it counts as hung.
   * The deadline of a request may be earlier.
   */
  readonly timeoutMicros: number;
  /**
   * Called if the server turns out to be a sharding proxy before any connection has worked. No call is sent to it.
   * `sentence` states what to do.
   */
  readonly onProxy?: ((sentence: string) => void) | undefined;
  readonly log?: RedisLog | undefined;
  /** Receives the name of each fault of Redis or the connection. */
  readonly observeFault?: ((fault: StoreFault) => void) | undefined;
}

/** Counts of connections by state. */
export interface ConnectionCounts {
  readonly active: number;
  /** Number of connections since start, including closed ones. */
  readonly opened: number;
  readonly closed: number;
}

/** Events of a connection, and its probe. */
export interface RedisConnectionEvents {
  /** Checks a new connection before any command other than the login is sent. Rejects if the server is unsuitable. */
  check(send: SendCommand): Promise<void>;
  /**
   * Tests all commands and permissions that calls need with `send`, including a write. Rejects if the test fails.
   * `isNew`: no probe has succeeded on this connection so far.
   */
  probe(send: SendCommand, isNew: boolean): Promise<void>;
  /** Calls can be sent. */
  up(): void;
  /** Calls fail until `up`; `reason` is for the log. */
  down(reason: string): void;
  /** The reconnect grace has ended without a connection. */
  graceExpired(): void;
}

// With these pauses, weir uses Redis again well within 2 s after Redis is available.
export const DEFAULT_RETRY: RetryPauses = { initialMs: 50, maxMs: 500 };

/** The user and password for Redis. */
export interface RedisLogin {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** Parses REDIS_AUTH: a password, or `user:password`. Empty means no login. */
export function parseLogin(text: string): RedisLogin {
  if (text === '') return {};
  const colon = text.indexOf(':');
  if (colon === -1) return { password: text };
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Events of a {@link LoginSource} for the owner of a connection. */
export interface LoginListeners {
  /** A new login, which open connections should use. Callers of `login` get it, too. */
  renewed(login: RedisLogin): void;
  /**
   * A new login could not be obtained, so the previous one remains; `sentence` is for the log and contains no secret.
   * Undefined: a login was obtained. Only one of several listeners is called, because one log line is enough.
   */
  failed(sentence: string | undefined): void;
}

/** Source of a login that may change. Connections share it, and who opened it closes it after them. */
export interface LoginSource {
  login(): Promise<RedisLogin>;
  /** Adds listeners. Returns a function that removes them. */
  follow(listeners: LoginListeners): () => void;
  close(): void;
}
