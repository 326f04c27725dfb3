import type { BucketStore } from '../limiter/bucket-store.js';
import type { Clock } from '../limiter/clock.js';
import { DenyCache, type LocalCacheStats } from '../storage/deny-cache.js';
import { MemoryStore } from '../storage/memory/memory-store.js';
import type { RedisStoreOptions } from '../storage/redis/redis-store-options.js';
import { SplitStore } from '../storage/split-store.js';
import type { Logger } from '../telemetry/logger.js';
import type { DenyCacheStats, MemoryStats } from '../telemetry/metrics-options.js';
import type { PoolStats } from '../telemetry/reference/reference-stats.js';
import { followPools, giveUpAfter, openPool, type RedisPool } from './redis-pool.js';
import { mainRedis, perSecondRedis } from './settings/redis-settings.js';
import type { Settings } from './settings/settings-table.js';
import type { StartError } from './start-error.js';

/** What the processes of one server tell each other about the Redis that they share. */
export interface RedisWork {
  /**
   * `listener` is told that Redis will work for this process: which of {@link Store.pools}, and for how many
   * microseconds from now.
   */
  onWork(listener: (pool: number, micros: number) => void): void;
  /** Process `from` told its listener so. */
  othersWork(from: number, pool: number, micros: number): void;
}

/** Where this process keeps its buckets, and what it knows of that. */
export interface Store extends RedisWork {
  /** For people: `memory`, or Redis and its address without credentials. */
  readonly name: string;
  readonly buckets: BucketStore;
  /** In memory, for `on_store_failure: local`; the same as `buckets` when that is in memory. */
  readonly local: BucketStore;
  /** Longest that a decision may wait for it, microseconds. */
  readonly timeoutMicros: number;
  /** Whether it can decide now; with a second Redis, whether both can. */
  up(): boolean;
  memoryStats(): MemoryStats;
  /** Zeros where there is no deny cache. */
  denyCacheStats(): DenyCacheStats;
  /** Undefined where denials are not kept. */
  localCacheStats(): LocalCacheStats | undefined;
  /** One for each Redis; none in memory. */
  pools(): readonly PoolStats[];
  /** The policy may be another one: forgets what was learnt under the old one. */
  reloaded(): void;
  onChange(listener: (up: boolean) => void): void;
  /** Told of each call to Redis: microseconds until its answer. */
  onAnswer(listener: (micros: number) => void): void;
  /** Told when Redis was not reached in time after the start (REDIS_STARTUP_MAX_ELAPSED_TIME): weir must end. */
  onGivenUp(listener: (error: StartError) => void): void;
  close(): Promise<void>;
}

/** Redis decides again for this long: local buckets are forgotten. */
const FORGET_MICROS = 5_000_000;
const NO_DENY_CACHE: DenyCacheStats = { answers: 0, entries: 0 };

function memoryStore(settings: Settings, clock: Clock): MemoryStore {
  return new MemoryStore({
    clock,
    maxBuckets: settings.memoryMaxBuckets,
    maxBytes: settings.memoryMaxBytes,
    countDeniedHits: !settings.stopIncrementWhenOver,
  });
}

/** Opens the store that the settings name. Redis is connected to in the background. Throws {@link StartError}. */
export function openStore(settings: Settings, clock: Clock, log: Logger): Store {
  if (settings.redisUrl !== '') return redisStore(settings, clock, log);
  const memory = memoryStore(settings, clock);
  return {
    name: 'memory',
    buckets: memory,
    local: memory,
    timeoutMicros: settings.redisTimeout,
    up: () => true,
    memoryStats: () => memory,
    denyCacheStats: () => NO_DENY_CACHE,
    localCacheStats: () => undefined,
    pools: () => [],
    reloaded: () => {},
    onChange: () => {},
    onAnswer: () => {},
    onGivenUp: () => {},
    onWork: () => {},
    othersWork: () => {},
    close: () => memory.close(),
  };
}

function redisStore(settings: Settings, clock: Clock, log: Logger): Store {
  const onAnswer: ((micros: number) => void)[] = [];
  const onChange: ((up: boolean) => void)[] = [];
  const onGivenUp: ((error: StartError) => void)[] = [];
  const onWork: ((pool: number, micros: number) => void)[] = [];
  const observed = (options: RedisStoreOptions, pool: number): RedisStoreOptions => ({
    ...options,
    log: (level, message) => log[level](message),
    observeCall: (micros) => {
      for (const listener of onAnswer) listener(micros);
    },
    tellWork: (micros) => {
      for (const listener of onWork) listener(pool, micros);
    },
  });
  const mainOptions = mainRedis(settings);
  const secondOptions = perSecondRedis(settings);
  const main = openPool('redis_pool', observed(mainOptions, 0));
  const pools: RedisPool[] = [main];
  let store: BucketStore = main.store;
  let timeoutMicros = settings.redisTimeout;
  if (secondOptions !== undefined) {
    const second = openPool('redis_per_second_pool', observed(secondOptions, 1));
    pools.push(second);
    timeoutMicros = Math.max(timeoutMicros, settings.perSecondTimeout ?? 0);
    store = new SplitStore({
      perSecond: second.store,
      main: main.store,
      timeoutMicros,
      countDeniedHits: !settings.stopIncrementWhenOver,
      monotonicMicros: () => clock.monotonicMicros(),
    });
  }
  const denials = denyCache(settings, store, clock);
  const up = (): boolean => pools.every((pool) => pool.store.connected);
  const fallback = new Fallback(() => memoryStore(settings, clock), clock, up);
  followPools(pools, (nowUp) => {
    for (const listener of onChange) listener(nowUp);
  });
  const stopWaiting = giveUpAfter(settings.redisStartupMaxElapsed, pools, (error) => {
    for (const listener of onGivenUp) listener(error);
  });
  return {
    name: `Redis ${pools.map(({ address }) => address).join(' and ')}`,
    buckets: denials ?? store,
    local: fallback,
    timeoutMicros,
    up,
    memoryStats: () => fallback.memory,
    denyCacheStats: () => denials ?? NO_DENY_CACHE,
    localCacheStats: () => denials?.stats,
    pools: () => pools.map((pool) => ({ name: pool.name, ...pool.store.connections })),
    reloaded: () => denials?.clear(),
    onChange: (listener) => onChange.push(listener),
    onAnswer: (listener) => onAnswer.push(listener),
    onGivenUp: (listener) => onGivenUp.push(listener),
    onWork: (listener) => onWork.push(listener),
    othersWork: (from, pool, micros) => pools[pool]?.store.othersWork(from, micros),
    close: async () => {
      stopWaiting();
      await fallback.close();
      await store.close();
    },
  };
}

/** LOCAL_CACHE_SIZE_IN_BYTES: unset keeps denials of token buckets, 0 none, more those of windows, too. */
function denyCache(settings: Settings, store: BucketStore, clock: Clock): DenyCache | undefined {
  const { localCacheBytes, denyCacheMaxAge } = settings;
  const windows = localCacheBytes !== undefined;
  if (localCacheBytes === 0 || (denyCacheMaxAge === 0 && !windows)) return undefined;
  return new DenyCache({
    store,
    maxAgeMicros: denyCacheMaxAge,
    windows,
    maxEntries: settings.denyCacheMaxEntries,
    ...(localCacheBytes === undefined ? {} : { maxBytes: localCacheBytes }),
    monotonicMicros: () => clock.monotonicMicros(),
  });
}

/**
 * Buckets in memory that stand in for Redis's (`on_store_failure: local`): the next outage starts with full ones, but a
 * Redis that comes and goes must not fill them again and again.
 */
class Fallback implements BucketStore {
  memory: MemoryStore;
  private readonly clock: Clock;
  private readonly forgetting: NodeJS.Timeout;
  private usedAtMicros = Number.NEGATIVE_INFINITY;

  constructor(fresh: () => MemoryStore, clock: Clock, up: () => boolean) {
    this.memory = fresh();
    this.clock = clock;
    this.forgetting = setInterval(() => {
      const quiet = clock.monotonicMicros() - this.usedAtMicros > FORGET_MICROS;
      if (up() && quiet && this.memory.size > 0) this.memory = fresh();
    }, FORGET_MICROS / 1000).unref();
  }

  take(...[items]: Parameters<BucketStore['take']>): ReturnType<MemoryStore['take']> {
    this.usedAtMicros = this.clock.monotonicMicros();
    return this.memory.take(items);
  }

  async close(): Promise<void> {
    clearInterval(this.forgetting);
    await this.memory.close();
  }
}
