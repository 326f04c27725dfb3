import { BrokenInvariant } from '../invariant.js';
import { type BucketStore, StorageError, type TakeItem, type TakeResult } from '../limiter/bucket-store.js';

/** Asks a store, whose state may turn out to be broken: then it could not decide, and the failure policies answer. */
export function askStore(
  store: BucketStore,
  items: readonly TakeItem[],
  deadlineMicros: number,
  connection: unknown,
): TakeResult | Promise<TakeResult> {
  try {
    return store.take(items, deadlineMicros, connection);
  } catch (error) {
    if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
    throw error;
  }
}
