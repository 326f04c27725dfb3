import { type BucketStore, StorageError } from '../../../src/limiter/bucket-store.js';
import type { Shard, ShardMap } from '../../../src/storage/sharded/shard.js';

/**
 * A map whose only server keeps its buckets in `store`; `holds` says what holds its buckets, undefined while it is
 * away.
 */
export function mapOfOne(store: BucketStore, holds: () => unknown = () => 1): ShardMap {
  const shard: Shard = {
    refusal: () => undefined,
    takePartition: ({ items, deadlineMicros, connection, mayWait }) =>
      store.take(items, deadlineMicros, connection, mayWait),
    get connectionEpoch() {
      return holds();
    },
    giveBackPartition: async ({ items, deadlineMicros, connection }, takenOn) => {
      if (takenOn === undefined || holds() !== takenOn) return 'skipped';
      const result = await store.take(items, deadlineMicros, connection);
      return result instanceof StorageError ? 'failed' : 'made';
    },
  };
  return { partitionOf: () => 0, shardOf: () => shard, close: () => store.close() };
}
