import type { StorageError } from '../../limiter/bucket-store.js';
import type { RedisServerOptions } from './connection/connection-options.js';
import type { RedisReplyError } from './connection/redis-error.js';
import type { RedisKeys } from './redis-key.js';
import type { ScriptBatch } from './script-batch.js';
import type { HighestTime } from './take-script-sender.js';

/** Settings of RedisStore. */
export interface RedisStoreOptions extends RedisServerOptions {
  /** Whether windows count the hits of denied requests. */
  readonly countDeniedHits: boolean;
  /**
   * Maximum number of items (limits that requests match) that may wait at a time (REDIS_MAX_IN_FLIGHT). Bulk requests
   * may use half of it. Further takes are refused, as `full` while Redis replies, otherwise as `overloaded`.
   */
  readonly maxInFlight: number;
  /** Maximum number of keys in one call, unless a single request has more (REDIS_BATCH_KEYS). */
  readonly keysPerCall: number;
  /** Whether outcomes tell when Redis decided, for the decision log; default false. */
  readonly tellsTime?: boolean;
  /** Prefix of the keys; default `weir:1:`. */
  readonly keyPrefix?: string;
  /** Called for each call with the microseconds until its reply or failure, the number of items, and the failure. */
  readonly observeCall?: (micros: number, items: number, failure: StorageError['reason'] | undefined) => void;
  /** If there are several servers: handles calls that this server redirects. */
  readonly redirect?: Redirect;
  /**
   * If there are several servers: returns a hash tag of this server for probes, or undefined if the server has no
   * slots.
   */
  readonly probeTag?: () => string | undefined;
  /** If there are several servers: the key cache, and the latest time, that they share. */
  readonly keys?: RedisKeys;
  readonly highestTime?: HighestTime;
  /** The clock of deadlines, in microseconds; the machine's monotonic clock by default. */
  readonly monotonicMicros?: () => number;
  /** For tests: returns the time of buckets, in microseconds, instead of Redis's clock. */
  readonly clock?: () => number;
}

/**
 * Handles a call that one of several servers refused without executing it. The result `taken` means that another server
 * sends and ends it, and `emptied` that other calls contain its requests. `held` means that it waits for {@link
 * BatchQueue.reroute}, and `failed` that no server accepts it.
 */
export type Redirect = (
  batch: ScriptBatch,
  error: RedisReplyError,
) => 'taken' | 'emptied' | 'held' | 'failed';

/** Maximum number of redirections of a call, which bounds redirection loops. */
export const MAX_REDIRECTIONS = 5;

/**
 * Returns whether a node of a Redis Cluster reports that it does not serve these keys at the moment (Redis Cluster
 * specification, "Redirection and resharding").
 */
export function isRedirection({ message }: RedisReplyError): boolean {
  return /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN Hash slot not served)\b/.test(message);
}
