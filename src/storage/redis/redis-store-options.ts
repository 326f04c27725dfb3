import type { StorageError } from '../../limiter/bucket-store.js';
import type { Redirect } from './cluster/redirect.js';
import type { RedisServerOptions } from './connection/connection-options.js';
import type { RedisKeys } from './redis-key.js';

/**
 * The clock that buckets use (REDIS_CLOCK). `server`: Redis's clock, which the script reads; `caller`: the same time,
 * as estimated by the caller; `auto`: `server`, until Redis refuses the time to scripts.
 */
export type RedisClock = 'auto' | 'server' | 'caller';

/** Settings of RedisStore. */
export interface RedisStoreOptions extends RedisServerOptions {
  /** Whether windows count the hits of denied requests. */
  readonly countDeniedHits: boolean;
  /**
   * Maximum number of items (limits that requests match) that may wait at a time (REDIS_MAX_IN_FLIGHT). Further takes
   * are refused: as `full` while Redis answers, otherwise as `overloaded`.
   */
  readonly maxInFlight: number;
  /** Maximum number of keys in one call, unless a single request has more (REDIS_BATCH_KEYS). */
  readonly keysPerCall: number;
  readonly clockOf: RedisClock;
  /** Prefix of the keys; default `weir:1:`. */
  readonly keyPrefix?: string;
  /** Receives each call: microseconds until its answer or failure, number of items, and the failure. */
  readonly observeCall?: (micros: number, items: number, failure: StorageError['reason'] | undefined) => void;
  /**
   * Receives work that other processes of this server may have to wait for: Redis is expected to be busy with it for
   * `micros`. `node` is the name of the server if there are several.
   */
  readonly reportWork?: (micros: number, node?: string) => void;
  /** For one server of several: handles calls that it redirects. */
  readonly redirect?: Redirect;
  /** For one server of several: returns a hash tag of that server for probes; undefined if it has none. */
  readonly probeTag?: () => string | undefined;
  /** For one server of several: the key cache that they share. */
  readonly keys?: RedisKeys;
  /** Returns the time of the deadline clock, in microseconds; the machine's monotonic clock by default. */
  readonly monotonicMicros?: () => number;
  /**
   * For tests: returns the time of buckets, in microseconds, instead of Redis's clock; the caller's time if `clockOf`
   * says so.
   */
  readonly clock?: () => number;
}
