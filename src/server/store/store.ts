import type { StoreNode } from '../../admin/health-detail.js';
import type { BucketStore, LocalStore, StorageError } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { RedisRole, StoreFault } from '../../limiter/failure-policy.js';
import type { HoldInspector } from '../../limiter/holds/hold-inspector.js';
import { throttledLog } from '../../runtime/timers.js';
import type { LocalCacheStats } from '../../storage/deny-cache.js';
import { MemoryStore } from '../../storage/memory/memory-store.js';
import type { RollbackStats } from '../../storage/sharded/rollbacks.js';
import type { Logger } from '../../telemetry/logger.js';
import type { DenyCacheStats, LeaseStats, MemoryStats } from '../../telemetry/metrics.js';
import type { PoolStats } from '../../telemetry/reference/reference-stats.js';
import type { Settings } from '../settings/settings-table.js';
import type { StartError } from '../start-error.js';

/** The store of this process, with its state and statistics. */
export interface Store {
  /** `memory`, or the addresses of Redis without credentials, for messages. */
  readonly name: string;
  readonly buckets: BucketStore;
  /** Local buckets for `on_store_failure: local`; the same as `buckets` if these are in memory. */
  readonly local: LocalStore;
  readonly holds: HoldInspector;
  /** Maximum time that a decision may wait for the store, in microseconds. */
  readonly timeoutMicros: number;
  /** Whether the store can decide now; with a second Redis, whether both can. */
  up(): boolean;
  /**
   * Tells all processes that share the store that an operator filled buckets, so that they drop cached denials.
   * Resolves with the error if they could not be told. Never rejects.
   */
  announceFilled(): Promise<StorageError | undefined>;
  /**
   * Shares a secret with all processes that have the same store: `own` returns the secret of this process, and
   * `onShared` receives the one to use.
   */
  shareSecret(own: () => string, onShared: (secret: string) => void): void;
  memoryStats(): MemoryStats;
  /** All zero with a single Redis that is not a cluster. */
  rollbackStats(): RollbackStats;
  /** All zero without a deny cache. */
  denyCacheStats(): DenyCacheStats;
  /** All zero in memory. */
  leaseStats(): LeaseStats;
  /** Returns the number of tokens of a bucket that this process has leased. */
  leasedTokens(key: string): number;
  /** Undefined if denials are not cached. */
  localCacheStats(): LocalCacheStats | undefined;
  /** One element per Redis; empty in memory. */
  pools(): readonly PoolStats[];
  /** All known servers of Redis; empty in memory. */
  nodes(): readonly StoreNode[];
  /** Discards what was learned under the previous policy, because a reload may have replaced it. */
  reloaded(): void;
  /** Calls `listener` with {@link up} when it changes, and when a server becomes available or unavailable. */
  onChange(listener: (up: boolean) => void): void;
  /** Calls `listener` for each call to Redis, with the microseconds until its answer. */
  onAnswer(listener: (micros: number) => void): void;
  /** Calls `listener` for each fault of a Redis or of its connection. */
  onFault(listener: (redis: RedisRole, fault: StoreFault) => void): void;
  /**
   * Calls `listener` if Redis was not reached in time after the start (REDIS_STARTUP_MAX_ELAPSED_TIME). The process
   * must then exit.
   */
  onGivenUp(listener: (error: StartError) => void): void;
  close(): Promise<void>;
}

export const NO_GIVE_BACKS: RollbackStats = { made: 0, failed: 0, skipped: 0 };
export const NO_LEASES: LeaseStats = { tripsSaved: 0, tokensLapsed: 0, earlyDenials: 0 };
export const NO_DENY_CACHE: DenyCacheStats = { answers: 0, entries: 0 };

/** Creates a store in memory with the bounds of the settings. */
export function memoryStore(settings: Settings, clock: Clock, log: Pick<Logger, 'warn'>): MemoryStore {
  const shouldLog = throttledLog();
  const onHoldRefused = (): void => {
    if (shouldLog())
      log.warn(
        'the memory for holds is full, so weir denies requests of limits with concurrency or hold. Raise ' +
          'MEMORY_MAX_BYTES, or lower expires_after of these limits; see docs/runbooks.md#weirmemoryholdsrefused',
      );
  };
  return new MemoryStore({
    clock,
    maxBuckets: settings.memoryMaxBuckets,
    maxBytes: settings.memoryMaxBytes,
    countDeniedHits: !settings.stopIncrementWhenOver,
    onHoldRefused,
  });
}
