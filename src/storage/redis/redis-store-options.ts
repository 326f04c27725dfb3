import type { StorageError } from '../../limiter/bucket-store.js';
import type { StoreFault } from '../../limiter/store-fault.js';
import type { RedisLog, RedisTlsOptions, RetryPauses } from './connection/connection-options.js';
import type { LoginSource } from './connection/login-source.js';
import type { RedisSettingNames } from './connection/outage.js';
import type { RedisAddress } from './connection/redis-address.js';
import type { RedisFinder } from './connection/redis-finder.js';

/** Settings of RedisStore. */
export interface RedisStoreOptions {
  readonly address: RedisAddress;
  /** Used when `address.tls`. */
  readonly tls?: RedisTlsOptions;
  /** Where the login comes from, in place of `address`. */
  readonly login?: LoginSource;
  /** Makes who knows where Redis is, in place of `address`. */
  readonly finder?: () => RedisFinder;
  /** How address and login are named in the log; default the variables of the main Redis. */
  readonly names?: RedisSettingNames;
  /** Pauses between attempts until Redis was reached for the first time; default as later. */
  readonly startup?: RetryPauses;
  /** Longest wait for an answer, in microseconds (REDIS_TIMEOUT). A request's own deadline may be sooner. */
  readonly timeoutMicros: number;
  /** Whether windows count the hits of denied requests. */
  readonly countDeniedHits: boolean;
  /**
   * Items, each a limit that a request meets, that may wait at a time (REDIS_MAX_IN_FLIGHT). Beyond it takes are
   * refused: as `full` while Redis answers, else as `overloaded`.
   */
  readonly maxInFlight: number;
  /** Most keys of one call, unless a single request has more (REDIS_BATCH_KEYS). */
  readonly keysPerCall: number;
  /** Failures in a row that open the circuit breaker; default 5. */
  readonly breakerFailures?: number;
  /** Default `weir:1:`. */
  readonly keyPrefix?: string;
  readonly log?: RedisLog;
  /** Told about every call: microseconds until its answer or failure, items in it, and what went wrong. */
  readonly observeCall?: (micros: number, items: number, failure: StorageError['reason'] | undefined) => void;
  /** Told of each fault of Redis or of the way to it, by name. */
  readonly observeFault?: (fault: StoreFault) => void;
  /**
   * Told of work that other processes of this server may have to wait for: Redis is expected to be busy with it for so
   * many microseconds.
   */
  readonly tellWork?: (micros: number) => void;
  /** Clock of deadlines, in microseconds; default the machine's. */
  readonly monotonicMicros?: () => number;
  /** For tests: the time of buckets, in microseconds, in place of Redis's own. */
  readonly clock?: () => number;
}

/** Counts since start. */
export interface RedisStoreCounters {
  /** Script calls sent. */
  calls: number;
  /** Requests in them. */
  takes: number;
  items: number;
  /** Calls sent again on another connection, because the one that they were sent on was lost. */
  resent: number;
  /** Takes that ended with an error, by reason. */
  readonly failures: Record<StorageError['reason'], number>;
}

/** {@link RedisStoreCounters} of a store that has just been made. */
export function newCounters(): RedisStoreCounters {
  const failures = {
    timeout: 0,
    disconnected: 0,
    overloaded: 0,
    full: 0,
    breaker_open: 0,
    rejected: 0,
    broken: 0,
  };
  return { calls: 0, takes: 0, items: 0, resent: 0, failures };
}

export const DEFAULT_BREAKER_FAILURES = 5;
