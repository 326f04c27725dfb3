import { timerMs } from '../../limiter/clock.js';
import { RedisStore } from '../../storage/redis/redis-store.js';
import type { RedisStoreOptions } from '../../storage/redis/redis-store-options.js';
import { StartError } from '../start-error.js';

/** The reference's names of a pool in statistics. */
export type PoolName = 'redis_pool' | 'redis_per_second_pool';

/** One Redis of this process and its name in statistics. */
export interface RedisPool {
  readonly name: PoolName;
  readonly address: string;
  readonly store: RedisStore;
}

/** Connects in the background. */
export function openPool(name: PoolName, options: RedisStoreOptions): RedisPool {
  return { name, address: options.address.redactedAddress, store: new RedisStore(options) };
}

/** Calls `onChange` whenever all of `pools` are up for the first time or again, and when they no longer are. */
export function followPools(pools: readonly RedisPool[], onChange: (up: boolean) => void): void {
  let up = false;
  const look = (): void => {
    const now = pools.every(({ store }) => store.connected);
    if (now === up) return;
    up = now;
    onChange(up);
  };
  for (const { store } of pools) {
    store.onUp(look);
    store.onDown(look);
  }
}

/**
 * Calls `onGivenUp` unless each of `pools` was reached within `micros`; 0 waits for ever. Returns what stops waiting.
 */
export function giveUpAfter(
  micros: number,
  pools: readonly RedisPool[],
  onGivenUp: (error: StartError) => void,
): () => void {
  if (micros === 0) return () => {};
  const timer = setTimeout(() => {
    const missing = pools.filter(({ store }) => !store.everReached).map(({ address }) => address);
    if (missing.length === 0) return;
    onGivenUp(
      new StartError([
        `Redis ${missing.join(' and ')} was not reached within ${micros / 1e6} s of the start ` +
          '(REDIS_STARTUP_MAX_ELAPSED_TIME); the log says why: correct that, or raise the variable (0 waits for ever)',
      ]),
    );
  }, timerMs(micros));
  timer.unref();
  return () => clearTimeout(timer);
}
