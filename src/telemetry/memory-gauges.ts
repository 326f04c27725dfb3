import type { FamilyRegistry } from './family-registry.js';
import type { DenyCacheStats, MemoryStats } from './metrics-options.js';

/** Shows the buckets in memory, which `memoryStats` tells of. */
export function exposeMemory(registry: FamilyRegistry, memoryStats: () => MemoryStats): void {
  registry.gauge(
    { name: 'weir_memory_buckets', help: 'Buckets held in memory that are not full.' },
    () => memoryStats().size,
  );
  registry.gauge(
    { name: 'weir_memory_bucket_bytes', help: 'Estimated bytes of the buckets held in memory.' },
    () => memoryStats().bytes,
  );
  registry.counter(
    {
      name: 'weir_memory_evictions_total',
      help:
        'Buckets dropped before they were full because of MEMORY_MAX_BUCKETS or MEMORY_MAX_BYTES: each ' +
        'may let up to one bucketful through.',
    },
    () => memoryStats().evictions,
  );
}

/** Shows the deny cache, which `stats` tells of. */
export function exposeDenyCache(registry: FamilyRegistry, stats: () => DenyCacheStats): void {
  registry.counter(
    {
      name: 'weir_deny_cache_answers_total',
      help: 'Requests denied without asking Redis, because their token buckets cannot have refilled yet.',
    },
    () => stats().answers,
  );
  registry.gauge(
    {
      name: 'weir_deny_cache_entries',
      help: 'Denials that the deny cache keeps: DENY_CACHE_MAX_ENTRIES is the most.',
    },
    () => stats().entries,
  );
}
