import { type BucketStore, StorageError } from '../../../src/limiter/bucket-store.js';
import type { UndoableStore } from '../../../src/storage/sharded/shard.js';

interface UndoingOptions {
  /** What holds its buckets; undefined while it is away. */
  readonly holds?: () => unknown;
  /** Deadline of what is given back now. */
  readonly deadlineMicros?: () => number;
}

/** A store whose takes can be undone; unless told otherwise it is never away, and may take its time. */
export function undoing(store: BucketStore, options: UndoingOptions = {}): UndoableStore {
  const { holds = () => 1, deadlineMicros = () => Infinity } = options;
  return {
    take: (...asked) => store.take(...asked),
    close: () => store.close(),
    holding: holds,
    giveBack: async (refunds, takenOn, connection) => {
      if (takenOn === undefined || holds() !== takenOn) return 'skipped';
      const result = await store.take(refunds, deadlineMicros(), connection);
      return result instanceof StorageError ? 'failed' : 'made';
    },
  };
}
