import type { FamilyRegistry } from './family-registry.js';
import type { DenyCacheStats, MemoryStats } from './metrics-options.js';

/** Exposes the buckets and holds in memory. */
export function exposeMemory(registry: FamilyRegistry, memoryStats: () => MemoryStats): void {
  registry.gauge(
    { name: 'weir_memory_buckets', help: 'Buckets in memory that are not full.' },
    () => memoryStats().size,
  );
  registry.gauge(
    { name: 'weir_memory_bucket_bytes', help: 'Estimated memory use of buckets, in bytes.' },
    () => memoryStats().bytes,
  );
  registry.counter(
    {
      name: 'weir_memory_evictions_total',
      help:
        'Buckets evicted before they were full, because of MEMORY_MAX_BUCKETS or MEMORY_MAX_BYTES. Each ' +
        'eviction may allow as many extra hits as a full bucket holds.',
    },
    () => memoryStats().evictions,
  );
  registry.gauge(
    {
      name: 'weir_memory_holds',
      help: 'Reservations and slots of concurrency limits in memory.',
    },
    () => memoryStats().holdCount,
  );
  registry.counter(
    {
      name: 'weir_memory_holds_refused_total',
      help: 'Holds that did not fit into their share of MEMORY_MAX_BYTES. Their requests count as over the limit.',
    },
    () => memoryStats().refusedHolds,
  );
}

/** Exposes the deny cache. */
export function exposeDenyCache(registry: FamilyRegistry, stats: () => DenyCacheStats): void {
  registry.counter(
    {
      name: 'weir_deny_cache_answers_total',
      help: 'Requests that the deny cache denied without asking Redis.',
    },
    () => stats().answers,
  );
  registry.gauge(
    {
      name: 'weir_deny_cache_entries',
      help: 'Entries of the deny cache, at most DENY_CACHE_MAX_ENTRIES.',
    },
    () => stats().entries,
  );
}
