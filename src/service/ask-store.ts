import type { RateLimitRequest } from '../codec/messages.js';
import { BrokenInvariant } from '../invariant.js';
import { type BucketStore, StorageError, type TakeItem, type TakeResult } from '../limiter/bucket-store.js';
import type { WaitingRequests } from './waiting-requests.js';

/**
 * Asks a store, whose state may turn out to be broken: then it could not decide, and the failure policies answer. Of a
 * store that does not answer at once the request is one of `waiting` until it does.
 */
export function askStore(
  store: BucketStore,
  items: readonly TakeItem[],
  deadlineMicros: number,
  request: RateLimitRequest,
  connection: unknown,
  waiting: WaitingRequests | undefined,
): TakeResult | Promise<TakeResult> {
  const ended = waiting?.begin(request, connection);
  const mayWait = waiting === undefined || ended !== undefined;
  let result: TakeResult | Promise<TakeResult>;
  try {
    result = store.take(items, deadlineMicros, connection, mayWait);
  } catch (error) {
    ended?.();
    if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
    throw error;
  }
  if (ended === undefined) return result;
  if (!(result instanceof Promise)) {
    ended();
    return result;
  }
  return result.then(
    (late) => {
      ended();
      return late;
    },
    (error: unknown) => {
      ended();
      throw error;
    },
  );
}
