import type { StoreNode } from '../../admin/health-detail.js';
import type { BucketStore, LocalStore } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { ControlBook, LostControls } from '../../limiter/control.js';
import type { RedisRole, StoreFault } from '../../limiter/store-fault.js';
import type { LocalCacheStats } from '../../storage/deny-cache.js';
import type { LocalChargeStats } from '../../storage/local/local-buckets.js';
import { MemoryStore } from '../../storage/memory/memory-store.js';
import type { GiveBackStats } from '../../storage/sharded/give-backs.js';
import type { DenyCacheStats, MemoryStats } from '../../telemetry/metrics-options.js';
import type { PoolStats } from '../../telemetry/reference/reference-stats.js';
import type { Settings } from '../settings/settings-table.js';
import type { StartError } from '../start-error.js';

/** What the processes of one server tell each other about the Redis that they share. */
export interface RedisWork {
  /** `listener` is told that a Redis will work for this process. */
  onWork(listener: (work: RedisWorkTold) => void): void;
  /** Process `from` told its listener so. */
  othersWork(from: number, work: RedisWorkTold): void;
  /** `listener` is told that Redis has lost so many blocks and exemptions that were in force. */
  onControlsLost(listener: (lost: LostControls) => void): void;
}

/** A Redis is expected to work so many microseconds from now for a process. */
export interface RedisWorkTold {
  /** The place in {@link Store.pools}. */
  readonly pool: number;
  /** Which node of a cluster; empty where there are none. */
  readonly node: string;
  readonly micros: number;
}

/** Where this process keeps its buckets, and what it knows of that. */
export interface Store extends RedisWork {
  /** For people: `memory`, or Redis and its address without credentials. */
  readonly name: string;
  readonly buckets: BucketStore;
  /** In memory, for `on_store_failure: local`; the same as `buckets` when that is in memory. */
  readonly local: LocalStore;
  /** What operators have decided about callers. */
  readonly controls: ControlBook;
  /** Longest that a decision may wait for it, microseconds. */
  readonly timeoutMicros: number;
  /** Whether it can decide now; with a second Redis, whether both can. */
  up(): boolean;
  memoryStats(): MemoryStats;
  /** Zeros where buckets are in memory. */
  localChargeStats(): LocalChargeStats;
  /** Zeros where there is but one Redis, and that no cluster. */
  giveBackStats(): GiveBackStats;
  /** Zeros where there is no deny cache. */
  denyCacheStats(): DenyCacheStats;
  /** Undefined where denials are not kept. */
  localCacheStats(): LocalCacheStats | undefined;
  /** One for each Redis; none in memory. */
  pools(): readonly PoolStats[];
  /** Each server that buckets lie on, as far as is known; none in memory. */
  nodes(): readonly StoreNode[];
  /** The policy may be another one: forgets what was learnt under the old one. */
  reloaded(): void;
  /** Told whether {@link up}, when that has changed, and when a server came or went. */
  onChange(listener: (up: boolean) => void): void;
  /** Told of each call to Redis: microseconds until its answer. */
  onAnswer(listener: (micros: number) => void): void;
  /** Told of each fault of a Redis, or of the way to it. */
  onFault(listener: (redis: RedisRole, fault: StoreFault) => void): void;
  /** Told when Redis was not reached in time after the start (REDIS_STARTUP_MAX_ELAPSED_TIME): weir must end. */
  onGivenUp(listener: (error: StartError) => void): void;
  close(): Promise<void>;
}

export const NO_GIVE_BACKS: GiveBackStats = { made: 0, failed: 0, skipped: 0 };
export const NO_LOCAL_CHARGES: LocalChargeStats = { waiting: 0, charged: 0, lapsed: 0, forgotten: 0 };
export const NO_DENY_CACHE: DenyCacheStats = { answers: 0, entries: 0 };

/** Buckets in memory, as the settings bound them. */
export function memoryStore(settings: Settings, clock: Clock): MemoryStore {
  return new MemoryStore({
    clock,
    maxBuckets: settings.memoryMaxBuckets,
    maxBytes: settings.memoryMaxBytes,
    countDeniedHits: !settings.stopIncrementWhenOver,
  });
}
