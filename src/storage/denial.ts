import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import { outcome } from '../limiter/outcome.js';
import { costCarry, costWhole, isCharge, type TokenBucketRate, type WindowRate } from '../limiter/rate.js';

/** What is known of a token bucket that did not hold what was asked. Times are those of the local monotonic clock. */
export interface TokenDenial {
  readonly kind: 'token_bucket';
  /** The object, not its numbers: a reload makes new ones, so that what was learnt before it answers nothing. */
  readonly rate: TokenBucketRate;
  /** Fewest hits that are denied; a peek asks for 1. */
  readonly hits: number;
  readonly untilMicros: number;
  /** When the bucket is full: whole microseconds and carry in 1/q µs. */
  readonly fullAtMicros: number;
  readonly carry: number;
}

/** What is known of a window that was over its limit: until it ends, its count only grows. */
export interface WindowDenial {
  readonly kind: 'window';
  /** What windows of one rule have in common, whatever their limit is now. */
  readonly lengthMicros: number;
  readonly timeZone: string | undefined;
  /** Hits counted, at least. */
  readonly used: number;
  /** End of the window, on the local monotonic clock. */
  readonly untilMicros: number;
}

export type KnownDenial = TokenDenial | WindowDenial;

/** Whether `item`, asked at `nowMicros`, is limited as certainly as `denial` was. */
export function isDenied(denial: KnownDenial, { rate, hits, refund }: TakeItem, nowMicros: number): boolean {
  if (refund || denial.untilMicros <= nowMicros || isCharge(rate, hits, refund)) return false;
  if (denial.kind === 'token_bucket') return denial.rate === rate && Math.max(hits, 1) >= denial.hits;
  // A peek at a window asks for nothing: it is limited only once the count is over the limit.
  return (
    rate.kind === 'window' &&
    rate.lengthMicros === denial.lengthMicros &&
    rate.calendar?.timeZone === denial.timeZone &&
    denial.used + hits > rate.requestsPerUnit
  );
}

/** The outcome of an item that {@link isDenied}. */
export function deniedOutcome(denial: KnownDenial, item: TakeItem, nowMicros: number): TakeOutcome {
  if (denial.kind === 'token_bucket') {
    return outcome(item, true, denial.fullAtMicros, denial.carry, nowMicros, 0, true);
  }
  return {
    limited: true,
    remaining: 0,
    waitMicros: denial.untilMicros - nowMicros,
    used: denial.used,
    forgiven: 0,
    cached: true,
  };
}

/** What a limited `outcome` of a window that was asked at `askedMicros` tells. */
export function windowDenial(rate: WindowRate, outcome: TakeOutcome, askedMicros: number): WindowDenial {
  return {
    kind: 'window',
    lengthMicros: rate.lengthMicros,
    timeZone: rate.calendar?.timeZone,
    used: outcome.used,
    untilMicros: askedMicros + outcome.waitMicros,
  };
}

/**
 * The state of the token bucket that a limited item found, in local time. `waitMicros` and `remaining` tell it to less
 * than a microsecond; of what is possible it is the fullest, so that no wait is told too long. Believed for
 * `maxAgeMicros`.
 */
export function tokenDenial(
  rate: TokenBucketRate,
  hits: number,
  { remaining, waitMicros }: TakeOutcome,
  askedMicros: number,
  maxAgeMicros: number,
): TokenDenial {
  const asked = Math.min(Math.max(hits, 1), rate.maxTokens);
  // Waits are rounded up, so a whole microsecond less was not enough: room < cost(asked) - (waitMicros - 1).
  let whole = costWhole(rate, asked) - (waitMicros - 1);
  let carry = costCarry(rate, asked);
  // Nor was there one token more: room < cost(remaining + 1).
  if (remaining < rate.maxTokens) {
    const nextWhole = costWhole(rate, remaining + 1);
    const nextCarry = costCarry(rate, remaining + 1);
    if (nextWhole < whole || (nextWhole === whole && nextCarry < carry)) {
      whole = nextWhole;
      carry = nextCarry;
    }
  }
  // The largest room below that bound, and from it the time at which nothing is missing.
  carry -= 1;
  if (carry < 0) {
    carry += rate.q;
    whole -= 1;
  }
  let missingWhole = rate.fillWhole - whole;
  let missingCarry = rate.fillCarry - carry;
  if (missingCarry < 0) {
    missingCarry += rate.q;
    missingWhole -= 1;
  }
  return {
    kind: 'token_bucket',
    rate,
    hits: Math.max(hits, 1),
    untilMicros: askedMicros + Math.min(waitMicros, maxAgeMicros),
    fullAtMicros: askedMicros + missingWhole,
    carry: missingCarry,
  };
}
