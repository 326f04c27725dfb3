import type { MemoryStoreOptions } from '../../../src/storage/memory/memory-store.js';
import type { RedisStoreOptions } from '../../../src/storage/redis/redis-store-options.js';

/** Options of a MemoryStore for tests that do not test them. */
export const MEMORY: Omit<MemoryStoreOptions, 'clock'> = {
  maxBuckets: 1_000_000,
  maxBytes: 512 * 1024 * 1024,
  countDeniedHits: true,
};

/** Options of a RedisStore for tests that do not test them. */
export const REDIS: Omit<RedisStoreOptions, 'address'> = {
  // Longer than any pause of a loaded machine.
  timeoutMicros: 20_000_000,
  countDeniedHits: true,
  maxInFlight: 20_000,
  keysPerCall: 256,
};
