import { type BucketStore, StorageError } from '../../../src/limiter/bucket-store.js';
import { takeFromOne, type UndoableStore } from '../../../src/storage/sharded/request-parts.js';
import type { Shard } from '../../../src/storage/sharded/shard.js';

/** A store whose takes can be undone; `holds` says what holds its buckets, undefined while it is away. */
export function undoing(store: BucketStore, holds: () => unknown = () => 1): UndoableStore {
  const shard: Shard = {
    refusal: () => undefined,
    takePart: ({ items, deadlineMicros, connection, mayWait }) =>
      store.take(items, deadlineMicros, connection, mayWait),
    get holds() {
      return holds();
    },
    giveBackPart: async ({ items, deadlineMicros, connection }, takenOn) => {
      if (takenOn === undefined || holds() !== takenOn) return 'skipped';
      const result = await store.take(items, deadlineMicros, connection);
      return result instanceof StorageError ? 'failed' : 'made';
    },
  };
  return {
    take: (...asked) => store.take(...asked),
    close: () => store.close(),
    takeUndoably: (items, asking) => takeFromOne(0, shard, items, asking),
  };
}
