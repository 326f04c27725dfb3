import type { StorageError } from '../../limiter/bucket-store.js';
import type { Redirect } from './cluster/redirect.js';
import type { RedisServerOptions } from './connection/connection-options.js';
import type { RedisKeys } from './redis-key.js';

/**
 * Whose clock buckets go by (REDIS_CLOCK). `server`: Redis's, which the script reads; `caller`: the same as it is
 * known outside the script; `auto`: `server`, until scripts are refused the time.
 */
export type RedisClock = 'auto' | 'server' | 'caller';

/** Settings of RedisStore. */
export interface RedisStoreOptions extends RedisServerOptions {
  /** Whether windows count the hits of denied requests. */
  readonly countDeniedHits: boolean;
  /**
   * Items, each a limit that a request meets, that may wait at a time (REDIS_MAX_IN_FLIGHT). Beyond it takes are
   * refused: as `full` while Redis answers, else as `overloaded`.
   */
  readonly maxInFlight: number;
  /** Most keys of one call, unless a single request has more (REDIS_BATCH_KEYS). */
  readonly keysPerCall: number;
  readonly clockOf: RedisClock;
  /** Default `weir:1:`. */
  readonly keyPrefix?: string;
  /** Told about every call: microseconds until its answer or failure, items in it, and what went wrong. */
  readonly observeCall?: (micros: number, items: number, failure: StorageError['reason'] | undefined) => void;
  /**
   * Told of work that other processes of this server may have to wait for: Redis is expected to be busy with it for so
   * many microseconds. `node` names it where there are several.
   */
  readonly reportWork?: (micros: number, node?: string) => void;
  /** Of one server of several: what becomes of calls that it sends elsewhere. */
  readonly redirect?: Redirect;
  /** Of one server of several: a hash tag that lies there, to probe it by; undefined where none does. */
  readonly probeTag?: () => string | undefined;
  /** Of one server of several: the names of keys that all of them remember together. */
  readonly keys?: RedisKeys;
  /** Clock of deadlines, in microseconds; default the machine's. */
  readonly monotonicMicros?: () => number;
  /** For tests: the time of buckets, in microseconds, in place of Redis's own; a caller's if `clockOf` says so. */
  readonly clock?: () => number;
}
