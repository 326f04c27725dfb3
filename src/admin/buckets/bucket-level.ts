import type { WindowRate } from '../../limiter/fixed-window.js';
import type { Rate } from '../../limiter/rate.js';
import type { TakeOutcome } from '../../limiter/take-outcome.js';
import { costWhole, type TokenBucketRate } from '../../limiter/token-bucket.js';
import type { BucketLevel } from './messages.js';

const MICROS = 1_000_000;

/** What is there of a bucket, as the outcome of a refund, which is never limited, tells it. */
export function levelOf(rate: Rate, outcome: TakeOutcome): BucketLevel {
  return rate.kind === 'token_bucket' ? tokenLevel(rate, outcome) : windowLevel(rate, outcome);
}

/** Time to fill is told to the microsecond, and the debt rounded up, as of an empty bucket that is about to refill. */
function tokenLevel(rate: TokenBucketRate, { remaining, waitMicros }: TakeOutcome): BucketLevel {
  if (remaining >= rate.maxTokens) return levelAt(rate, remaining, 0, 0);
  const missing = Math.max(0, rate.fillWhole - costWhole(rate, remaining + 1) + waitMicros);
  // Times are rounded up.
  const owed = missing - rate.fillWhole - 1;
  const debt = rate.maxDebt > 0 && owed > 0 ? Math.min(rate.maxDebt, Math.ceil((owed * rate.q) / rate.p)) : 0;
  return levelAt(rate, remaining, debt, missing);
}

/** The level of a token bucket that is full in `missingMicros`. */
function levelAt(rate: TokenBucketRate, left: number, debt: number, missingMicros: number): BucketLevel {
  const nextMicros = Math.max(0, missingMicros - rate.fillWhole + costWhole(rate, left + 1));
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
  const endsIn = waitMicros / MICROS;
  return { left: remaining, debt, next_token_in: endsIn, full_in: endsIn };
}

/** {@link levelOf} if `tokens` were given back, up to full, or with `over` as far past it as the rate can hold. */
export function levelWith(rate: Rate, outcome: TakeOutcome, tokens: number, over: boolean): BucketLevel {
  if (rate.kind === 'window') {
    const most = rate.requestsPerUnit + (over ? rate.maxSurplus : 0);
    // What is there past the limit is not counted as used; what was denied is given back beside the tokens.
    const left =
      rate.maxDebt === 0 || outcome.remaining > rate.requestsPerUnit
        ? outcome.remaining
        : rate.requestsPerUnit - outcome.used;
    const after = Math.max(left, Math.min(left + tokens, most));
    const used = rate.requestsPerUnit - after;
    return windowLevel(rate, { ...outcome, used, remaining: Math.max(0, after) });
  }
  const { left, debt, full_in } = tokenLevel(rate, outcome);
  const after = left - debt + tokens;
  const most = rate.maxTokens + (over ? rate.maxSurplus : 0);
  if (after >= rate.maxTokens) return levelAt(rate, Math.max(left, Math.min(after, most)), 0, 0);
  const missing = Math.max(0, Math.round(full_in * MICROS) - costWhole(rate, tokens));
  return levelAt(rate, Math.max(0, after), Math.max(0, -after), missing);
}
