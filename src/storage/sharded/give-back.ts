import type { TakeItem, TakeOutcome } from '../../limiter/bucket-store.js';
import { MAX_UINT32 } from '../../limiter/rate.js';
import { costWhole, type TokenBucketRate } from '../../limiter/token-bucket.js';

/**
 * Refunds that undo what a store took for a request that it let pass and that was then denied elsewhere. Never more
 * than it cost others by then (`TakeItem.undoMark`). A charge that met the bound of a bucket's debt is not undone.
 * Candidates keep what they took, and windows the hits that they count for denied requests, too (`countDeniedHits`).
 */
export function refundsOf(
  items: readonly TakeItem[],
  outcomes: readonly TakeOutcome[],
  countDeniedHits: boolean,
): TakeItem[] {
  const refunds: TakeItem[] = [];
  for (let i = 0; i < items.length; i++) {
    const { key, tagLength, rate } = items[i] as TakeItem;
    const outcome = outcomes[i] as TakeOutcome;
    const hits = takenBy(items[i] as TakeItem, outcome, countDeniedHits);
    if (hits === 0) continue;
    const { undoMark } = outcome;
    if (undoMark === undefined) continue;
    refunds.push({ key, tagLength, rate, hits, refund: true, enforcement: 'observe', undoMark });
  }
  return refunds;
}

/**
 * The outcomes as a denied request reports them: what is there with nothing taken. Exact but for the waits, which may
 * be a microsecond off, for buckets in debt, which are told to the nearest token, and for those past full, or windows
 * with more than their limit (`TakeItem.over`), of which the request would have used up what is over.
 */
export function outcomesBeforeTake(
  items: readonly TakeItem[],
  outcomes: readonly TakeOutcome[],
  countDeniedHits: boolean,
): TakeOutcome[] {
  /** What this item and those before it took, by bucket. */
  const taken = new Map<string, number>();
  return outcomes.map((found, i) => {
    const item = items[i] as TakeItem;
    const { key, rate } = item;
    const hits = (taken.get(key) ?? 0) + takenBy(item, found, countDeniedHits);
    // All of a charge may have been forgiven.
    const isUndone = found.forgiven > 0 && item.enforcement !== 'candidate';
    const outcome = isUndone ? { ...found, forgiven: 0 } : found;
    if (hits === 0) return outcome;
    taken.set(key, hits);
    if (rate.kind === 'token_bucket') return outcome.limited ? outcome : withAddedHits(rate, outcome, hits);
    // A limit of a list reports what it found.
    if (outcome.limited && rate.allOrNothing) return outcome;
    if (!outcome.limited && outcome.remaining > rate.requestsPerUnit) {
      return { ...outcome, remaining: Math.min(outcome.remaining + hits, MAX_UINT32) };
    }
    const used = Math.max(0, outcome.used - hits);
    return { ...outcome, used, remaining: rate.remaining(outcome.limited, used) };
  });
}

/** What is to be given back of what an item took: whole hits. */
function takenBy(item: TakeItem, outcome: TakeOutcome, countDeniedHits: boolean): number {
  const { rate, hits, refund, enforcement } = item;
  if (refund || outcome.limited || enforcement === 'candidate' || rate.countsDenied(countDeniedHits))
    return 0;
  // A bucket at the bound of its debt takes nothing back.
  return rate.kind === 'token_bucket' && outcome.forgiven > 0 ? 0 : hits - outcome.forgiven;
}

/** The outcome of a bucket that holds `hits` more. */
function withAddedHits(rate: TokenBucketRate, outcome: TakeOutcome, hits: number): TakeOutcome {
  // An empty bucket waits for one token; what it waits longer is its debt.
  const rounded = rate.q === 1 ? 0 : 1;
  const owedMicros = rate.maxDebt > 0 ? outcome.waitMicros - costWhole(rate, 1) - rounded : 0;
  const owed = owedMicros > 0 ? Math.ceil((owedMicros * rate.q) / rate.p) : 0;
  // One that is still past full gets all of it back.
  const most = outcome.remaining > rate.maxTokens ? MAX_UINT32 : rate.maxTokens;
  const remaining = Math.min(most, Math.max(0, outcome.remaining + hits - owed));
  let waitMicros = remaining >= rate.maxTokens ? 0 : outcome.waitMicros;
  if (waitMicros > 0 && owed > 0) waitMicros -= costWhole(rate, Math.min(hits, owed));
  return { ...outcome, remaining, waitMicros, used: Math.max(0, rate.maxTokens - remaining) };
}
