import { type BucketStore, StorageError } from '../../../src/limiter/bucket-store.js';
import type { Shard, ShardMap } from '../../../src/storage/sharded/shard.js';

/**
 * A shard map with one server, whose buckets are in `store`. `dataId` returns the id of the server's data; undefined
 * while the server is unavailable.
 */
export function singleShardMap(store: BucketStore, dataId: () => unknown = () => 1): ShardMap {
  const shard: Shard = {
    refusal: () => undefined,
    takePartition: ({ items, deadlineMicros, mayWait }) => store.take(items, deadlineMicros, mayWait),
    get connectionId() {
      return dataId();
    },
    rollBackPartition: async ({ items, deadlineMicros }, epochAtTake) => {
      if (epochAtTake === undefined || dataId() !== epochAtTake) return 'skipped';
      const result = await store.take(items, deadlineMicros);
      return result instanceof StorageError ? 'failed' : 'made';
    },
  };
  return { partitionOf: () => 0, shardOf: () => shard, close: () => store.close() };
}
