import { StorageError, type Take, type TakeOutcome } from '../../limiter/bucket-store.js';
import type { WindowRate } from '../../limiter/fixed-window.js';
import type { Rate } from '../../limiter/rate.js';
import { refillWhole, type TokenBucketRate } from '../../limiter/token-bucket.js';
import { BrokenInvariant } from '../../runtime/invariant.js';
import type { MatchedTake } from '../../service/request-context.js';
import type { BucketLevel } from './messages.js';
import type { QuestionContext } from './read-question.js';

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

const MICROS = 1_000_000;

/** The level of a bucket that refills at a known time. */
type TimedLevel = BucketLevel & { readonly full_in: number };

/** Returns the level of a bucket from the outcome of a refund, which is never denied. */
export function levelOf(rate: Rate, outcome: TakeOutcome): BucketLevel {
  if (rate.kind === 'concurrency') return slotLevel(outcome);
  return rate.kind === 'token_bucket' ? tokenLevel(rate, outcome) : windowLevel(rate, outcome);
}

/**
 * Computes the level of a token bucket. The time until it is full is exact to a microsecond. The debt is rounded up, as
 * for an empty bucket that is about to refill.
 */
function tokenLevel(rate: TokenBucketRate, { remaining, waitMicros }: TakeOutcome): TimedLevel {
  if (remaining >= rate.maxTokens) return levelAt(rate, rate.maxTokens, 0, 0);
  const missing = Math.max(0, rate.fillWhole - refillWhole(rate, remaining + 1) + waitMicros);
  // Stores round times up.
  const owed = missing - rate.fillWhole - 1;
  const debt =
    rate.maxDebt > 0 && owed > 0
      ? Math.min(rate.maxDebt, Math.ceil((owed * rate.refillDenominator) / rate.refillNumerator))
      : 0;
  return levelAt(rate, remaining, debt, missing);
}

/** Returns the level of a concurrency limit. The time at which a request ends is unknown. */
function slotLevel({ remaining, used }: TakeOutcome): BucketLevel {
  return { left: remaining, debt: 0, next_token_in: null, full_in: null, in_flight: used };
}

function levelAt(rate: TokenBucketRate, left: number, debt: number, missingMicros: number): TimedLevel {
  const nextMicros = Math.max(0, missingMicros - rate.fillWhole + refillWhole(rate, left + 1));
  return {
    left,
    debt,
    next_token_in: missingMicros === 0 ? 0 : nextMicros / MICROS,
    full_in: missingMicros / MICROS,
  };
}

function windowLevel(
  { requestsPerUnit, maxDebt }: WindowRate,
  { remaining, used, waitMicros }: Pick<TakeOutcome, 'remaining' | 'used' | 'waitMicros'>,
): BucketLevel {
  const debt = maxDebt > 0 ? Math.min(maxDebt, Math.max(0, used - requestsPerUnit)) : 0;
  // A limit that allows no requests never changes.
  if (requestsPerUnit === 0) return { left: 0, debt, next_token_in: null, full_in: null };
  const endsIn = remaining >= requestsPerUnit ? 0 : waitMicros / MICROS;
  return { left: remaining, debt, next_token_in: endsIn, full_in: endsIn };
}

/** Returns the level after `tokens` are given back, up to the capacity. See {@link levelOf}. */
export function levelWith(rate: Rate, outcome: TakeOutcome, tokens: number): BucketLevel {
  // Slots cannot be granted.
  if (rate.kind === 'concurrency') return slotLevel(outcome);
  if (rate.kind === 'window') {
    // Denied hits are given back in addition to the tokens.
    const left = rate.maxDebt === 0 ? outcome.remaining : rate.requestsPerUnit - outcome.used;
    const after = Math.min(left + tokens, rate.requestsPerUnit);
    const used = rate.requestsPerUnit - after;
    return windowLevel(rate, { ...outcome, used, remaining: Math.max(0, after) });
  }
  const { left, debt, full_in } = tokenLevel(rate, outcome);
  const after = left - debt + tokens;
  if (after >= rate.maxTokens) return levelAt(rate, rate.maxTokens, 0, 0);
  const missing = Math.max(0, Math.round(full_in * MICROS) - refillWhole(rate, tokens));
  return levelAt(rate, Math.max(0, after), Math.max(0, -after), missing);
}
