import type { StoreFault } from '../../../limiter/store-fault.js';
import type { ConnectionAttempts } from './connection-attempts.js';
import type { LoginSource } from './login-source.js';
import type { RedisAddress } from './redis-address.js';
import type { RedisLogin } from './redis-login.js';

/** TLS settings of a Redis connection, as in node:tls. Certificates and keys are in PEM format. */
export interface RedisTlsOptions {
  readonly ca?: string | string[];
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
  /** Replaces the check of the host name in the certificate; returns undefined to accept it. */
  readonly checkServerIdentity?: () => undefined;
}

/** Logs each change of state once, without passwords. */
export type RedisLog = (level: 'info' | 'warn' | 'error', message: string) => void;

/** Sends one command whose reply is a string. Rejects with Redis's error, or if the connection is lost. */
export type SendCommand = (name: string, args: readonly string[]) => Promise<Buffer>;

/** Pauses between connection attempts, in milliseconds; each is twice the previous one. */
export interface RetryPauses {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** Names of a connection's settings, for messages. */
export interface RedisSettingNames {
  /** Prefix of the variables: `REDIS` for REDIS_URL, REDIS_AUTH and REDIS_TLS. */
  readonly prefix: string;
}

/** Settings of one Redis server, passed unchanged from the store to its connection. */
export interface RedisServerOptions {
  readonly address: RedisAddress;
  /** TLS settings, used with `address.tls`. */
  readonly tls?: RedisTlsOptions | undefined;
  /** Source of the login, instead of `address`; closed with the connection. */
  readonly login?: LoginSource | undefined;
  /** Login of the Sentinels themselves. */
  readonly sentinelLogin?: RedisLogin | undefined;
  /** Names of these settings in the log; by default the variables of the main Redis. */
  readonly names?: RedisSettingNames | undefined;
  /** Pauses between attempts before the first connection; default {@link DEFAULT_RETRY}. */
  readonly startup?: RetryPauses | undefined;
  /** If there are several servers: the limit of connection attempts that they share. */
  readonly attempts?: ConnectionAttempts | undefined;
  /**
   * Maximum wait for a reply, in microseconds (REDIS_TIMEOUT). If Redis sends no reply for longer, it counts as hung.
   * The deadline of a request may be earlier.
   */
  readonly timeoutMicros: number;
  /** Number of consecutive failures that open the circuit breaker; default 5. */
  readonly breakerFailures?: number | undefined;
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

/** One connection to one Redis, which reconnects until it is closed. */
export interface StoreConnection {
  /** Whether calls can be sent. */
  readonly up: boolean;
  /** Whether calls may wait because Redis may be available soon. */
  readonly inReconnectGrace: boolean;
  /** The reason why calls cannot be sent now. */
  readonly downReason: 'breaker_open' | 'disconnected';
  /** Whether the memory of unanswered commands allows another call. */
  readonly hasRoom: boolean;
  /** Connections after login since start; at most one is open. */
  readonly connections: ConnectionCounts;
  readonly send: SendCommand;
  /** Records an answered call. */
  noteSuccess(): void;
  /** Records a failed call. */
  noteFailure(error: Error): void;
  /** Records that Redis has not replied to any call for a while. */
  noteSilence(micros: number): void;
  /** Closes the connection permanently. */
  close(): void;
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
