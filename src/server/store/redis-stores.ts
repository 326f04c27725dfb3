import type { BucketStore, TakeItem } from '../../limiter/bucket-store.js';
import type { Clock } from '../../limiter/clock.js';
import type { StoreFault } from '../../limiter/store-fault.js';
import { DenyCache } from '../../storage/deny-cache.js';
import { LocalBuckets } from '../../storage/local/local-buckets.js';
import type { RedisStore } from '../../storage/redis/redis-store.js';
import type { RedisStoreOptions } from '../../storage/redis/redis-store-options.js';
import { SplitStore } from '../../storage/split-store.js';
import type { Logger } from '../../telemetry/logger.js';
import { mainRedis, perSecondRedis } from '../settings/redis-settings.js';
import type { Settings } from '../settings/settings-table.js';
import type { StartError } from '../start-error.js';
import { followPools, giveUpAfter, openPool, type RedisPool } from './redis-pool.js';
import { memoryStore, NO_DENY_CACHE, NO_GIVE_BACKS, type Store } from './store.js';

/** Opens the Redis that the settings name, or both. Connected to in the background. Throws {@link StartError}. */
export function openRedisStores(settings: Settings, clock: Clock, log: Logger): Store {
  const onAnswer: ((micros: number) => void)[] = [];
  const onChange: ((up: boolean) => void)[] = [];
  const onGivenUp: ((error: StartError) => void)[] = [];
  const onFault: ((redis: 'main' | 'per_second', fault: StoreFault) => void)[] = [];
  const onWork: ((pool: number, micros: number) => void)[] = [];
  const observed = (options: RedisStoreOptions, pool: number): RedisStoreOptions => ({
    ...options,
    log: (level, message) => log[level](message),
    observeCall: (micros) => {
      for (const listener of onAnswer) listener(micros);
    },
    observeFault: (fault) => {
      for (const listener of onFault) listener(pool === 0 ? 'main' : 'per_second', fault);
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
  let split: SplitStore | undefined;
  let timeoutMicros = settings.redisTimeout;
  if (secondOptions !== undefined) {
    const second = openPool('redis_per_second_pool', observed(secondOptions, 1));
    pools.push(second);
    split = splitStore(settings, clock, main.store, second.store, (refunds) => denials?.refunded(refunds));
    timeoutMicros = split.timeoutMicros;
    store = split;
  }
  const denials = denyCache(settings, store, clock);
  const up = (): boolean => pools.every((pool) => pool.store.connected);
  const local = new LocalBuckets({
    fresh: () => memoryStore(settings, clock),
    clock,
    workers: settings.workers,
    maxBuckets: settings.memoryMaxBuckets,
    maxBytes: settings.memoryMaxBytes,
    store,
    up,
    anyUp: () => pools.some((pool) => pool.store.connected),
    log: (level, message) => log[level](message),
  });
  for (const pool of pools) pool.store.onUp(() => local.storeIsUp());
  followPools(pools, (nowUp) => {
    for (const listener of onChange) listener(nowUp);
  });
  const stopWaiting = giveUpAfter(settings.redisStartupMaxElapsed, pools, (error) => {
    for (const listener of onGivenUp) listener(error);
  });
  return {
    name: `Redis ${pools.map(({ address }) => address).join(' and ')}`,
    buckets: denials ?? store,
    local,
    timeoutMicros,
    up,
    memoryStats: () => local.memory,
    localChargeStats: () => local.stats,
    giveBackStats: () => split?.giveBackStats ?? NO_GIVE_BACKS,
    denyCacheStats: () => denials ?? NO_DENY_CACHE,
    localCacheStats: () => denials?.stats,
    pools: () => pools.map((pool) => ({ name: pool.name, ...pool.store.connections })),
    reloaded: () => denials?.clear(),
    onChange: (listener) => onChange.push(listener),
    onAnswer: (listener) => onAnswer.push(listener),
    onFault: (listener) => onFault.push(listener),
    onGivenUp: (listener) => onGivenUp.push(listener),
    onWork: (listener) => onWork.push(listener),
    othersWork: (from, pool, micros) => pools[pool]?.store.othersWork(from, micros),
    close: async () => {
      stopWaiting();
      await local.close();
      await store.close();
    },
  };
}

/** `perSecond` keeps windows of a second, `main` everything else. See SplitStoreOptions for `onGiveBack`. */
function splitStore(
  settings: Settings,
  clock: Clock,
  main: RedisStore,
  perSecond: RedisStore,
  onGiveBack: (refunds: readonly TakeItem[]) => void,
): SplitStore {
  return new SplitStore({
    main,
    perSecond,
    timeoutMicros: Math.max(settings.redisTimeout, settings.perSecondTimeout ?? 0),
    countDeniedHits: !settings.stopIncrementWhenOver,
    monotonicMicros: () => clock.monotonicMicros(),
    mainConnection: () => (main.connected ? main.connections.opened : undefined),
    onGiveBack,
  });
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
