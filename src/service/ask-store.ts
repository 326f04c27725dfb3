import { BrokenInvariant } from '../invariant.js';
import { type BucketStore, StorageError, type TakeItem, type TakeResult } from '../limiter/bucket-store.js';

/**
 * Calls a store. If the store finds its own state broken, the result is an error, as if the store were unavailable. The
 * last parameters are those of {@link BucketStore.take}; `failed` is called before an error is thrown.
 */
export function askStore<Item extends TakeItem>(
  store: { take(items: readonly Item[], ...rest: TakeParameters): TakeResult | Promise<TakeResult> },
  items: readonly Item[],
  deadlineMicros: number,
  mayWait = true,
  failed?: () => void,
): TakeResult | Promise<TakeResult> {
  try {
    return store.take(items, deadlineMicros, mayWait);
  } catch (error) {
    if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
    failed?.();
    throw error;
  }
}

type TakeParameters = Parameters<BucketStore['take']> extends [unknown, ...infer Rest] ? Rest : never;
