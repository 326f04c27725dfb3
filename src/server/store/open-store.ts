import type { Clock } from '../../limiter/clock.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Settings } from '../settings/settings-table.js';
import { memoryStore, NO_DENY_CACHE, NO_GIVE_BACKS, NO_LEASES, type Store } from './store.js';

/** Opens the store that the settings select. Redis connects in the background. Throws {@link StartError}. */
export function openStore(settings: Settings, clock: Clock, log: Logger): Store {
  if (settings.redisUrl !== '') {
    // Loaded only if needed, because loading code takes most of a start.
    const { openRedisStores } = require('./redis-stores.js') as typeof import('./redis-stores.js');
    return openRedisStores(settings, clock, log);
  }
  const memory = memoryStore(settings, clock, log);
  return {
    name: 'memory',
    buckets: memory,
    local: memory,
    holds: memory,
    announceFilled: async () => undefined,
    shareSecret: () => {},
    timeoutMicros: settings.redisTimeout,
    up: () => true,
    memoryStats: () => memory,
    rollbackStats: () => NO_GIVE_BACKS,
    denyCacheStats: () => NO_DENY_CACHE,
    leaseStats: () => NO_LEASES,
    leasedTokens: () => 0,
    localCacheStats: () => undefined,
    pools: () => [],
    nodes: () => [],
    reloaded: () => {},
    onChange: () => {},
    onAnswer: () => {},
    onFault: () => {},
    onGivenUp: () => {},
    close: () => memory.close(),
  };
}
