import type { Take, TakeOutcome } from '../../limiter/bucket-store.js';
import { isSkipped } from '../../limiter/decide.js';
import { refillWhole, type TokenBucketRate } from '../../limiter/token-bucket.js';

/**
 * Returns the refunds for a request that this store has allowed, but another partition has denied. A refund never
 * exceeds the tokens that other requests have lost because of this request (`Take.undoAtMicros`). Charges that have
 * reached the maximum debt are not undone. Windows keep the hits that they count for denied requests
 * (`countDeniedHits`). The caller settles the holds, which returns their hits.
 */
export function refundsOf(
  takes: readonly Take[],
  outcomes: readonly TakeOutcome[],
  countDeniedHits: boolean,
): Take[] {
  const refunds: Take[] = [];
  for (let i = 0; i < takes.length; i++) {
    const take = takes[i] as Take;
    const { key, hashTagLength, rate } = take;
    const outcome = outcomes[i] as TakeOutcome;
    const { undoAtMicros, hold } = outcome;
    if (hold === 'placed' || undoAtMicros === undefined) continue;
    const hits = isSkipped(takes, outcomes, i) ? 0 : takenBy(take, outcome, countDeniedHits);
    if (hits === 0) continue;
    refunds.push({
      key,
      hashTagLength,
      rate,
      hits,
      refund: true,
      enforcement: 'observe',
      undoAtMicros,
    });
  }
  return refunds;
}

/**
 * Returns the outcomes of the items as if the request had taken nothing, because a denied request reports this state.
 * The outcomes are exact, with two exceptions: waits may be off by 1 µs, and buckets in debt are rounded to the nearest
 * token. The holds that the request has placed are reported as abandoned.
 */
export function outcomesBeforeTake(
  takes: readonly Take[],
  outcomes: readonly TakeOutcome[],
  countDeniedHits: boolean,
): TakeOutcome[] {
  /** Hits that this item and earlier items have taken from each bucket. */
  const takenByKey = new Map<string, number>();
  return outcomes.map((found, i) => {
    const take = takes[i] as Take;
    const { key, rate } = take;
    const taken = isSkipped(takes, outcomes, i) ? 0 : takenBy(take, found, countDeniedHits);
    const hits = (takenByKey.get(key) ?? 0) + taken;
    // Possibly, all hits of a charge have exceeded the maximum debt.
    const outcome = found.uncollectedHits > 0 ? { ...found, uncollectedHits: 0 } : abandoned(found);
    if (hits === 0) return outcome;
    takenByKey.set(key, hits);
    if (rate.kind === 'token_bucket') return outcome.overLimit ? outcome : withAddedHits(rate, outcome, hits);
    if (rate.kind === 'concurrency') {
      const inFlight = Math.max(0, outcome.used - hits);
      const remaining = Math.max(0, rate.max - inFlight);
      const waitMicros = outcome.overLimit || remaining === 0 ? Number.POSITIVE_INFINITY : 0;
      return { ...outcome, used: inFlight, remaining, waitMicros };
    }
    // A limit in a list of limits reports the state before the request.
    if (outcome.overLimit && rate.countsOnlyAllowed) return outcome;
    const used = Math.max(0, outcome.used - hits);
    return { ...outcome, used, remaining: rate.remaining(outcome.overLimit, used) };
  });
}

function abandoned(outcome: TakeOutcome): TakeOutcome {
  return outcome.hold === 'placed' ? { ...outcome, hold: 'abandoned' } : outcome;
}

/** Returns the hits of an item that must be given back; a whole number. */
function takenBy(take: Take, outcome: TakeOutcome, countDeniedHits: boolean): number {
  const { rate, hits, refund, settles } = take;
  if (outcome.hold === 'placed') return hits;
  // A settlement is final. If it failed on another server, it is repeated.
  if (settles !== undefined) return 0;
  if (refund || outcome.overLimit || rate.countsDenied(countDeniedHits)) return 0;
  // A bucket at its maximum debt gets no refund.
  return rate.kind === 'token_bucket' && outcome.uncollectedHits > 0 ? 0 : hits - outcome.uncollectedHits;
}

/** Returns the outcome that the bucket would have with `hits` more tokens. */
function withAddedHits(rate: TokenBucketRate, outcome: TakeOutcome, hits: number): TakeOutcome {
  // The wait of an empty bucket is the time for one token. If the wait is longer, the bucket has debt.
  const rounded = rate.refillDenominator === 1 ? 0 : 1;
  const owedMicros = rate.maxDebt > 0 ? outcome.waitMicros - refillWhole(rate, 1) - rounded : 0;
  const owed = owedMicros > 0 ? Math.ceil((owedMicros * rate.refillDenominator) / rate.refillNumerator) : 0;
  const remaining = Math.min(rate.maxTokens, Math.max(0, outcome.remaining + hits - owed));
  let waitMicros = remaining >= rate.maxTokens ? 0 : outcome.waitMicros;
  if (waitMicros > 0 && owed > 0) waitMicros -= refillWhole(rate, Math.min(hits, owed));
  return { ...outcome, remaining, waitMicros, used: Math.max(0, rate.maxTokens - remaining) };
}
