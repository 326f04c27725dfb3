import { BrokenInvariant } from '../invariant.js';
import { type BucketStore, StorageError, type TakeItem, type TakeResult } from '../limiter/bucket-store.js';

/**
 * Asks a store. A store whose state turns out to be broken could not decide, so the failure policies answer. `mayWait`
 * is that of {@link BucketStore.take}; `failed` is called before an error is thrown.
 */
export function askStore(
  store: BucketStore,
  items: readonly TakeItem[],
  deadlineMicros: number,
  connection: unknown,
  mayWait: boolean,
  failed: (() => void) | undefined,
): TakeResult | Promise<TakeResult> {
  try {
    return store.take(items, deadlineMicros, connection, mayWait);
  } catch (error) {
    if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
    failed?.();
    throw error;
  }
}
