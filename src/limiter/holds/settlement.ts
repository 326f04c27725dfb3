import type { Take } from '../bucket-store.js';
import type { BucketOperation } from '../rate-algorithm.js';
import { refillRemainder, refillWhole, type TokenBucketRate } from '../token-bucket.js';
import type { HeldHits } from './hold.js';

/**
 * Returns the operation that settles a hold which was placed at `takenMicros` on the clock of its rate.
 *
 * A token bucket gets back the part of the unused hits that has not refilled yet. All hits of the hold have refilled at
 * `fullAtMicros` plus the time in which they refill, and the used hits refill first. The bucket is then never fuller
 * than if only the use had been deducted at the start.
 *
 * The rate may have changed since the start. A settlement never returns more time than the hold has cost. At a slower
 * rate, it returns that time minus the time in which the use refills now.
 */
export function settlementOperation(
  { rate, hits, refund }: Pick<Take, 'rate' | 'hits' | 'refund'>,
  { amount, fullAtMicros, refillMicros = 0 }: HeldHits,
  takenMicros: number,
): BucketOperation {
  const undoAtMicros = rate.undoMicrosOf(takenMicros);
  if (rate.kind !== 'token_bucket' || !refund) return { hits, refund, undoAtMicros };
  const used = amount - hits;
  const operation = { hits, refund, undoAtMicros, fullAtMicros: fullAtMicros + refillWhole(rate, used) };
  if (refillMicros === 0 || refillMicros >= holdCostMicros(rate, amount)) return operation;
  const roundedUp = refillRemainder(rate, used) > 0 ? 1 : 0;
  return { ...operation, refundMicros: refillMicros - refillWhole(rate, used) - roundedUp };
}

/** Returns `TakeOutcome.refillMicros` of a hold. */
export function holdCostMicros(rate: TokenBucketRate, hits: number): number {
  return Math.max(1, refillWhole(rate, hits));
}

/** Returns the refund or the charge of a settlement with `used` hits, for a hold of `amount` hits. */
export function correctionOf(used: number, amount: number): Pick<Take, 'hits' | 'refund'> {
  return { hits: Math.abs(used - amount), refund: used <= amount };
}
