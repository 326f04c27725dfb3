import type { StoreFault } from '../../../limiter/store-fault.js';
import type { ConnectionAttempts } from './connection-attempts.js';
import type { LoginSource } from './login-source.js';
import type { RedisSettingNames } from './outage.js';
import type { RedisAddress } from './redis-address.js';
import type { RedisFinder } from './redis-finder.js';
import type { ReplyBound } from './reply-bound.js';

/** TLS settings of a Redis connection, as node:tls takes them. Certificates and keys are PEM texts. */
export interface RedisTlsOptions {
  readonly ca?: string | string[];
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
  /** Replaces the check that the certificate names the host; returns undefined to accept. */
  readonly checkServerIdentity?: () => undefined;
}

/** Told once per change of state; never holds a password. */
export type RedisLog = (level: 'info' | 'warn' | 'error', message: string) => void;

/**
 * Sends one command; rejects with Redis's error, or at once when the connection is lost, as it is when the answer is
 * longer than `bound`.
 */
export type SendCommand = (name: string, args: string[], bound: ReplyBound) => Promise<unknown>;

/** Pauses between attempts to connect: each twice the one before, milliseconds. */
export interface RetryPauses {
  readonly initialMs: number;
  readonly maxMs: number;
}

/**
 * One Redis, and the ways to it. What the settings say goes on as it is: from the store to its connection, and to what
 * keeps that up.
 */
export interface RedisServerOptions {
  readonly address: RedisAddress;
  /** Used when `address.tls`. */
  readonly tls?: RedisTlsOptions | undefined;
  /** Where the login comes from, in place of `address`; closed with the connection. */
  readonly login?: LoginSource | undefined;
  /** Makes who knows where Redis is, in place of `address`. */
  readonly finder?: (() => RedisFinder) | undefined;
  /** How what is above is named in the log; default the variables of the main Redis. */
  readonly names?: RedisSettingNames | undefined;
  /** Pauses between attempts until Redis was reached for the first time; default as later. */
  readonly startup?: RetryPauses | undefined;
  /** Of one server of several: shares attempts to connect among them. */
  readonly attempts?: ConnectionAttempts | undefined;
  /**
   * Longest wait for an answer, in microseconds (REDIS_TIMEOUT): a Redis that is silent for longer hangs. A request's
   * own deadline may be sooner.
   */
  readonly timeoutMicros: number;
  /** Failures in a row that open the circuit breaker; default 5. */
  readonly breakerFailures?: number | undefined;
  /** Set behind a proxy that shards: it passes on commands that name a key, and each may fail by itself. */
  readonly proxied?: ProxiedOptions | undefined;
  readonly log?: RedisLog | undefined;
  /** Told of each fault of Redis or of the way to it, by name. */
  readonly observeFault?: ((fault: StoreFault) => void) | undefined;
}

/** What differs behind a proxy that shards. */
export interface ProxiedOptions {
  /**
   * Finds out by `send` what works, and rejects where nothing does. `take` takes from a bucket under a key that nobody
   * uses: all that calls do.
   */
  readonly probe: (send: SendCommand, take: (key: string) => Promise<void>) => Promise<void>;
}

/** Connections by what became of them. */
export interface ConnectionCounts {
  readonly active: number;
  /** Since start, those that are closed included. */
  readonly opened: number;
  readonly closed: number;
}

/** What the connection tells its owner, and has it do. */
export interface RedisConnectionEvents {
  /**
   * Does by `send` what calls will do, a write included. Rejects when that does not work. `isNew`: on this connection
   * none succeeded yet.
   */
  probe(send: SendCommand, isNew: boolean): Promise<void>;
  /** Calls may be made. */
  up(): void;
  /** Calls fail until `up`; `reason` may be logged. */
  down(reason: string): void;
  /** The connection is gone, and every call on it. */
  lost(): void;
  /** What waits for Redis to come up has waited in vain. */
  graceExpired(): void;
}

// With these, service is back well within two seconds of Redis.
export const DEFAULT_RETRY: RetryPauses = { initialMs: 50, maxMs: 500 };
