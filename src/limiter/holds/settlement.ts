import type { TakeItem } from '../bucket-store.js';
import type { BucketOperation } from '../rate-algorithm.js';
import { costWhole } from '../token-bucket.js';
import type { HeldHits } from './hold.js';

/**
 * Returns the operation of a settlement, for a hold that was taken at `takenMicros` on the clock of its rate.
 *
 * A token bucket gets back the part of the unused hits that has not refilled yet. The hold has refilled at `fullMicros`
 * plus the time that its hits take to refill; what was used refills first. The bucket is then never fuller than if only
 * the use had been taken at the start.
 */
export function settlementOf(
  { rate, hits, refund }: Pick<TakeItem, 'rate' | 'hits' | 'refund'>,
  { amount, fullMicros }: HeldHits,
  takenMicros: number,
): BucketOperation {
  const undoMark = rate.undoMarkAt(takenMicros);
  if (rate.kind !== 'token_bucket' || !refund) return { hits, refund, undoMark };
  return { hits, refund, undoMark, fullMicros: fullMicros + costWhole(rate, amount - hits) };
}

/** Returns the refund or the charge of a settlement with `used` hits, for a hold of `amount` hits. */
export function correctionOf(used: number, amount: number): Pick<TakeItem, 'hits' | 'refund'> {
  return { hits: Math.abs(used - amount), refund: used <= amount };
}
