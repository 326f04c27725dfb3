import { timerMs } from '../../limiter/clock.js';
import { ClusterStore, type ClusterStoreOptions } from '../../storage/redis/cluster/cluster-store.js';
import type { RedisBuckets } from '../../storage/redis/redis-buckets.js';
import { RedisStore } from '../../storage/redis/redis-store.js';
import { StartError } from '../start-error.js';

/** The reference's names of pools in statistics. */
export type PoolName = 'redis_pool' | 'redis_per_second_pool';

/** One Redis of this process, with its name in statistics. */
export interface RedisPool {
  readonly name: PoolName;
  readonly address: string;
  readonly store: RedisBuckets;
}

/** Opens one Redis, which connects in the background. */
export function openPool(name: PoolName, options: ClusterStoreOptions): RedisPool {
  const { redactedAddress: address, cluster } = options.address;
  const Kind = cluster === undefined ? RedisStore : ClusterStore;
  return { name, address, store: new Kind(options) };
}

/**
 * Calls `onChange` whenever a server of `pools` becomes available or unavailable, with whether all pools can decide.
 */
export function followPools(pools: readonly RedisPool[], onChange: (up: boolean) => void): void {
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
export function failUnlessReached(
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
