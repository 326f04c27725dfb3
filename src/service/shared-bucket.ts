import type { TakeOutcome } from '../limiter/bucket-store.js';
import { isCharge } from '../limiter/rate.js';
import { refillWhole } from '../limiter/token-bucket.js';
import type { MatchedTake } from './request-context.js';

/** Maximum number of takes whose keys are compared pairwise, which takes 1 or 2 µs and no memory. */
const MAX_COMPARED_TAKES = 16;

/** A bucket that several takes of one request use, with their total hits. */
class SharedBucket {
  /** Total hits, without refunds. */
  requestedHits = 0;
  /** Hits of the takes that the store allowed, minus refunds. */
  takenHits = 0;
  /** Whether the takes together do not fit even into a full bucket or an empty window. */
  exceedsLimit = false;
  /** Hits that a full bucket, or an empty window, would have given so far. */
  private usedHits = 0;

  /** Adds a take; returns whether it would not fit even if the bucket had been full before this request. */
  add({ rate, hits, refund, outcome }: MatchedTake): boolean {
    if (refund) {
      this.usedHits = Math.max(0, this.usedHits - hits);
      this.takenHits -= hits;
      return false;
    }
    this.requestedHits = Math.min(this.requestedHits + hits, Number.MAX_SAFE_INTEGER);
    if (outcome?.overLimit !== true) this.takenHits += hits;
    if (isCharge(rate, hits, refund)) {
      this.usedHits = Math.min(this.usedHits + hits, rate.reportedLimit + rate.maxDebt);
      return false;
    }
    // A peek checks for one more hit, except in a window without debt.
    const isPeek = hits === 0 && (rate.kind !== 'window' || rate.maxDebt > 0);
    if (this.usedHits + (isPeek ? 1 : hits) > rate.reportedLimit) {
      this.exceedsLimit = true;
      return true;
    }
    this.usedHits += hits;
    return false;
  }
}

/**
 * Marks takes that can never pass because several takes of the request use one bucket and together request more than it
 * can hold. Their outcomes get `together` and the wait until the bucket is full, like a single take that is too large.
 * If nothing is denied, the function only reads each take once.
 *
 * Quotas deny only together, so a quota that fits alone allows its request. Only quotas that do not fit are marked.
 */
export function markNeverPassing(takes: readonly MatchedTake[]): void {
  if (!isAnyLimited(takes) || !isAnyShared(takes)) return;
  const buckets = new Map<string, SharedBucket>();
  const oversized = new Set<MatchedTake>();
  /** Hits taken from the bucket before each limited take. */
  const takenBefore = new Map<MatchedTake, number>();
  for (const take of takes) {
    const bucket = buckets.get(take.key) ?? new SharedBucket();
    buckets.set(take.key, bucket);
    if (take.outcome?.overLimit === true) takenBefore.set(take, bucket.takenHits);
    if (bucket.add(take)) oversized.add(take);
  }
  for (const [take, taken] of takenBefore) {
    const bucket = buckets.get(take.key) as SharedBucket;
    // A single take that is too large is detected elsewhere.
    const neverPasses = take.quota ? oversized.has(take) : bucket.exceedsLimit;
    if (!neverPasses || bucket.requestedHits === take.hits) continue;
    const outcome = take.outcome as TakeOutcome;
    take.outcome = {
      combinedHits: bucket.requestedHits,
      ...outcome,
      waitMicros: untilFull(take, outcome, Math.max(0, taken)),
    };
  }
}

/**
 * Returns the microseconds until the bucket is full, without the `taken` hits of this request; for a window, until it
 * ends.
 */
function untilFull({ rate, hits }: MatchedTake, outcome: TakeOutcome, taken: number): number {
  if (rate.kind !== 'token_bucket') return outcome.waitMicros;
  const missing = rate.minTimeToFill(hits, outcome);
  return Math.max(0, missing.wholeMicros - refillWhole(rate, taken));
}

function isAnyLimited(takes: readonly MatchedTake[]): boolean {
  for (let i = 0; i < takes.length; i++)
    if ((takes[i] as MatchedTake).outcome?.overLimit === true) return true;
  return false;
}

function isAnyShared(takes: readonly MatchedTake[]): boolean {
  if (takes.length > MAX_COMPARED_TAKES) return new Set(takes.map(({ key }) => key)).size < takes.length;
  for (let i = 1; i < takes.length; i++) {
    const { key } = takes[i] as MatchedTake;
    for (let before = 0; before < i; before++) if ((takes[before] as MatchedTake).key === key) return true;
  }
  return false;
}
