import { StorageError, type Take, type TakeOutcome } from '../../limiter/bucket-store.js';
import type { Rate } from '../../limiter/rate.js';
import { BrokenInvariant } from '../../runtime/invariant.js';
import type { MatchedTake } from '../../service/request-context.js';
import type { QuestionContext } from './question-context.js';

/** Number of buckets that are read or changed at the same time. */
const MAX_CONCURRENT_CALLS = 20;

export interface BucketCall {
  readonly take: MatchedTake;
  /** Hits to give back; 0 for a peek. */
  readonly hits: number;
}

/** State of a bucket before and after an operation. Both are the same for a peek. */
export interface BucketFound {
  readonly before: TakeOutcome;
  readonly after: TakeOutcome;
}

/** The store that decides, and the clock of its deadlines. */
type CallContext = Pick<QuestionContext, 'store' | 'clock'>;

/**
 * Peeks at buckets and gives hits back to them. Each bucket changes in one atomic step. Several buckets are processed
 * at the same time. Returns an answer for each call, in the same order.
 */
export async function askBuckets(
  calls: readonly BucketCall[],
  context: CallContext,
): Promise<readonly (BucketFound | StorageError)[]> {
  const found: (BucketFound | StorageError)[] = [];
  for (let at = 0; at < calls.length; at += MAX_CONCURRENT_CALLS) {
    const part = calls.slice(at, at + MAX_CONCURRENT_CALLS);
    found.push(...(await Promise.all(part.map((call) => askBucket(call, context)))));
  }
  return found;
}

async function askBucket(
  { take, hits }: BucketCall,
  context: CallContext,
): Promise<BucketFound | StorageError> {
  const { key, hashTagLength, rate, holds } = take;
  // A refund of 0 is a peek that no cache answers and that cannot be denied. Expired holds are given back first.
  const look: Take = {
    key,
    hashTagLength,
    rate,
    hits: 0,
    refund: true,
    enforcement: 'observe',
    holds,
  };
  if (hits === 0) return takeItems([look], context);
  let denied = 0;
  if (countsPastLimit(rate) && hits < Number.MAX_SAFE_INTEGER) {
    const found = await takeItems([look], context);
    if (found instanceof StorageError) return found;
    denied = Math.max(0, found.before.used - rate.reportedLimit);
  }
  // Hits that are counted in the meantime are unknown, and may use up some of the returned hits.
  const back = Math.min(hits + denied, Number.MAX_SAFE_INTEGER);
  const refund: Take = {
    key,
    hashTagLength,
    rate,
    hits: back,
    refund: true,
    enforcement: 'observe',
  };
  return takeItems([look, refund], context);
}

async function takeItems(
  takes: readonly Take[],
  { store, clock }: CallContext,
): Promise<BucketFound | StorageError> {
  const deadlineMicros = clock.monotonicMicros() + store.timeoutMicros;
  try {
    const result = await store.buckets.take(takes, deadlineMicros);
    if (result instanceof StorageError) return result;
    return { before: result[0] as TakeOutcome, after: result.at(-1) as TakeOutcome };
  } catch (error) {
    if (error instanceof BrokenInvariant) return new StorageError('broken', error.message);
    throw error;
  }
}

/** Returns whether a window may have counted hits that it denied. A grant must not be used up by these hits. */
function countsPastLimit({ kind, maxDebt }: Rate): boolean {
  return kind === 'window' && maxDebt === 0;
}
