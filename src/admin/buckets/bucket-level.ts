import type { WindowRate } from '../../limiter/fixed-window.js';
import type { Rate } from '../../limiter/rate.js';
import type { TakeOutcome } from '../../limiter/rate-algorithm.js';
import { refillWhole, type TokenBucketRate } from '../../limiter/token-bucket.js';
import type { BucketLevel } from './messages.js';

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
