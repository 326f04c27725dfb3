import { randomBytes } from 'node:crypto';
import type { BucketStore } from '../../limiter/bucket-store.js';
import { type Clock, timerMs } from '../../limiter/clock.js';
import type { RedisRole, StoreFault } from '../../limiter/failure-policy.js';
import { Signal } from '../../runtime/signal.js';
import { DenyCache } from '../../storage/deny-cache.js';
import { LeaseStore } from '../../storage/leases.js';
import { LocalBuckets } from '../../storage/local/local-buckets.js';
import { ClusterStore, type ClusterStoreOptions } from '../../storage/redis/cluster/cluster-store.js';
import type { RedisBackend } from '../../storage/redis/redis-backend.js';
import { RedisHoldInspector } from '../../storage/redis/redis-hold-inspector.js';
import { RedisStore } from '../../storage/redis/redis-store.js';
import type { RedisStoreOptions } from '../../storage/redis/redis-store-options.js';
import { SharedText } from '../../storage/redis/shared-text.js';
import { isPerSecond, ShardedStore } from '../../storage/sharded/sharded-store.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { StartError } from '../start-error.js';
import { mainRedis, perSecondRedis } from './redis-options.js';
import { memoryStore, NO_DENY_CACHE, type Store } from './store.js';

/** Times between two reads of texts that processes share through Redis, in milliseconds. */
const ANNOUNCEMENT_READ_MS = 500;
const SECRET_READ_MS = 5000;

/**
 * Opens the Redis stores that the settings specify: one, or two with REDIS_PERSECOND. They connect in the background.
 * Throws {@link StartError}.
 */
export function openRedisStores(settings: Settings, clock: Clock, log: Logger): Store {
  const answered = new Signal<number>();
  const changed = new Signal<boolean>();
  const givenUp = new Signal<StartError>();
  const faulty = new Signal<RedisRole, StoreFault>();
  const withObservers = (options: RedisStoreOptions, pool: number): ClusterStoreOptions => ({
    ...options,
    log: (level, message) => log[level](message),
    observeCall: (micros) => answered.emit(micros),
    observeFault: (fault) => faulty.emit(roleOf(pool), fault),
    onProxy: (sentence) => givenUp.emit(new StartError([sentence])),
    takeAgain: (...asked) => store.take(...asked),
  });
  const mainOptions = mainRedis(settings);
  const secondOptions = perSecondRedis(settings);
  const main = openPool('redis_pool', withObservers(mainOptions, 0));
  const pools: RedisPool[] = [main];
  const second = secondOptions && openPool('redis_per_second_pool', withObservers(secondOptions, 1));
  if (second !== undefined) pools.push(second);
  const store = new ShardedStore({
    main: main.store,
    perSecond: second?.store,
    timeoutMicros: Math.max(settings.redisTimeout, secondOptions?.timeoutMicros ?? 0),
    countDeniedHits: mainOptions.countDeniedHits,
    monotonicMicros: () => clock.monotonicMicros(),
    onRollback: (refunds) => denials?.refunded(refunds),
  });
  const leases = new LeaseStore({ store, monotonicMicros: () => clock.monotonicMicros() });
  const denials = denyCache(settings, leases, clock);
  const forget = (): void => {
    denials?.clear();
    leases.clear();
  };
  const up = (): boolean => pools.every((pool) => pool.store.connected);
  const { keyPrefix } = mainOptions;
  const shared = { redis: main.store, keyPrefix };
  // Each process drops its cached denials and its leases when an operator has filled a bucket.
  const announcement = new SharedText({
    ...shared,
    name: 'announcements',
    readMs: ANNOUNCEMENT_READ_MS,
    onChange: forget,
  });
  let secret: SharedText | undefined;
  const holds = new RedisHoldInspector(
    (bucket) => (second !== undefined && isPerSecond(bucket) ? second : main).store,
    keyPrefix,
  );
  const local = new LocalBuckets({
    newStore: () => memoryStore(settings, clock, log),
    clock,
    workers: settings.workers,
    up: () => pools.every((pool) => pool.store.isComplete),
  });
  followPools(pools, changed.emit);
  const stopWaiting = failUnlessReached(settings.redisStartupMaxElapsed, pools, givenUp.emit);
  return {
    name: `Redis ${pools.map(({ address }) => address).join(' and ')}`,
    buckets: denials ?? leases,
    local,
    holds,
    announceFilled: () => {
      forget();
      // Earlier versions expect an identifier and keys in each line; `null` means all buckets.
      return announcement.write(`${randomBytes(12).toString('base64url')} null\n`);
    },
    shareSecret: (own, onShared) => {
      const onChange = (text: string): void => {
        if (text !== '') onShared(text);
      };
      secret = new SharedText({ ...shared, name: 'secret', readMs: SECRET_READ_MS, initial: own, onChange });
    },
    timeoutMicros: store.timeoutMicros,
    up,
    memoryStats: () => local.memory,
    rollbackStats: () => store.rollbackStats,
    denyCacheStats: () => denials ?? NO_DENY_CACHE,
    leaseStats: () => leases.stats,
    leasedTokens: (key) => leases.tokensOf(key),
    localCacheStats: () => denials?.stats,
    pools: () => pools.map((pool) => ({ name: pool.name, ...pool.store.connections })),
    nodes: () => pools.flatMap((pool, i) => pool.store.nodes.map((node) => ({ redis: roleOf(i), ...node }))),
    reloaded: forget,
    onChange: changed.add,
    onAnswer: answered.add,
    onFault: faulty.add,
    onGivenUp: givenUp.add,
    close: async () => {
      stopWaiting();
      announcement.close();
      secret?.close();
      await local.close();
      await store.close();
      for (const options of [mainOptions, secondOptions]) options?.login?.close();
    },
  };
}

function roleOf(pool: number): RedisRole {
  return pool === 0 ? 'main' : 'per_second';
}

/**
 * Opens the deny cache. If LOCAL_CACHE_SIZE_IN_BYTES is unset, it caches denials of token buckets. 0 disables it.
 * Other values also cache denials of windows.
 */
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

/** The reference's names of pools in statistics. */
type PoolName = 'redis_pool' | 'redis_per_second_pool';

/** One Redis of this process, with its name in statistics. */
interface RedisPool {
  readonly name: PoolName;
  readonly address: string;
  readonly store: RedisBackend;
}

function openPool(name: PoolName, options: ClusterStoreOptions): RedisPool {
  const { redactedAddress: address, cluster } = options.address;
  const Kind = cluster === undefined ? RedisStore : ClusterStore;
  return { name, address, store: new Kind(options) };
}

/**
 * Calls `onChange` whenever a server of `pools` becomes available or unavailable, with whether all pools can decide.
 */
function followPools(pools: readonly RedisPool[], onChange: (up: boolean) => void): void {
  const report = (): void => onChange(pools.every(({ store }) => store.connected));
  for (const { store } of pools) {
    store.onUp(report);
    store.onDown(report);
  }
}

/**
 * Calls `onGivenUp` unless each of `pools` is reached within `micros`; 0 means no limit. Returns a function that stops
 * waiting.
 */
function failUnlessReached(
  micros: number,
  pools: readonly RedisPool[],
  onGivenUp: (error: StartError) => void,
): () => void {
  if (micros === 0) return () => {};
  const missing = new Set(pools.map(({ address }) => address));
  const timer = setTimeout(() => {
    if (missing.size === 0) return;
    onGivenUp(
      new StartError([
        `weir could not reach Redis ${[...missing].join(' and ')} within ${micros / 1e6} s of the start ` +
          '(REDIS_STARTUP_MAX_ELAPSED_TIME); correct the connection error that the log shows, or raise ' +
          'this setting (0: no limit)',
      ]),
    );
  }, timerMs(micros));
  timer.unref();
  for (const { store, address } of pools) store.onUp(() => missing.delete(address));
  return () => clearTimeout(timer);
}
