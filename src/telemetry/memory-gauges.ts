import { Counter, Gauge } from '@prometheus-io/client';
import type { FamilyRegistry } from './family-registry.js';
import type { DenyCacheStats, MemoryStats } from './metrics-options.js';

/** Makes metrics of the buckets in memory, which `memoryStats` tells of whenever metrics are asked for. */
export function exposeMemory(registry: FamilyRegistry, memoryStats: () => MemoryStats): void {
  const registers = [registry.client];
  new Gauge({
    name: 'weir_memory_buckets',
    help: 'Buckets held in memory that are not full.',
    registers,
    collect() {
      this.set(memoryStats().size);
    },
  });
  new Gauge({
    name: 'weir_memory_bucket_bytes',
    help: 'Estimated bytes of the buckets held in memory.',
    registers,
    collect() {
      this.set(memoryStats().bytes);
    },
  });
  new Counter({
    name: 'weir_memory_evictions_total',
    help:
      'Buckets dropped before they were full because of MEMORY_MAX_BUCKETS or MEMORY_MAX_BYTES: each ' +
      'may let up to one bucketful through.',
    registers,
    collect() {
      this.reset();
      this.inc(memoryStats().evictions);
    },
  });
}

/** Makes metrics of the deny cache, which `stats` tells of whenever metrics are asked for. */
export function exposeDenyCache(registry: FamilyRegistry, stats: () => DenyCacheStats): void {
  const registers = [registry.client];
  new Counter({
    name: 'weir_deny_cache_answers_total',
    help: 'Requests denied without asking Redis, because their token buckets cannot have refilled yet.',
    registers,
    collect() {
      this.reset();
      this.inc(stats().answers);
    },
  });
  new Gauge({
    name: 'weir_deny_cache_entries',
    help: 'Denials that the deny cache keeps: DENY_CACHE_MAX_ENTRIES is the most.',
    registers,
    collect() {
      this.set(stats().entries);
    },
  });
}
