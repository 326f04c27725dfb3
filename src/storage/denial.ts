import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { WindowRate } from '../limiter/fixed-window.js';
import { isCharge } from '../limiter/rate.js';
import { TakeSnapshot } from '../limiter/running-bucket.js';
import type { TokenBucketRate } from '../limiter/token-bucket.js';

/** A token bucket that did not contain the requested hits. Times are those of the local monotonic clock. */
export interface TokenDenial {
  readonly kind: 'token_bucket';
  /** Compared by identity. A reload creates new rates, so earlier denials no longer apply. */
  readonly rate: TokenBucketRate;
  /** Smallest number of hits that is denied; 1 for a peek. */
  readonly hits: number;
  readonly untilMicros: number;
  /** Time at which the bucket is full: whole microseconds, and a carry in 1/q µs. */
  readonly fullAtMicros: number;
  readonly carry: number;
}

/** A window that was over its limit. Its count can only rise until it ends. */
export interface WindowDenial {
  readonly kind: 'window';
  /** Length of the window, which identifies the windows of a rule even if a reload changes their limit. */
  readonly lengthMicros: number;
  readonly timeZone: string | undefined;
  /** Minimum number of counted hits. */
  readonly used: number;
  /** End of the window, on the local monotonic clock. */
  readonly untilMicros: number;
}

export type KnownDenial = TokenDenial | WindowDenial;

/** Returns whether `denial` proves that `item` is limited at `nowMicros`. */
export function isDenied(denial: KnownDenial, { rate, hits, refund }: TakeItem, nowMicros: number): boolean {
  if (refund || denial.untilMicros <= nowMicros || isCharge(rate, hits, refund)) return false;
  if (denial.kind === 'token_bucket') return denial.rate === rate && Math.max(hits, 1) >= denial.hits;
  // A peek takes no hits from a window, so it is limited only if the count exceeds the limit.
  return (
    rate.kind === 'window' &&
    rate.lengthMicros === denial.lengthMicros &&
    rate.calendar?.timeZone === denial.timeZone &&
    denial.used + hits > rate.requestsPerUnit
  );
}

/** Reused for outcomes that did not come from the store. */
const found = new TakeSnapshot();

/** Returns the outcome of an item that {@link isDenied} found to be denied. */
export function deniedOutcome(denial: KnownDenial, item: TakeItem, nowMicros: number): TakeOutcome {
  if (denial.kind === 'token_bucket') {
    found.limited = true;
    found.whole = denial.fullAtMicros;
    found.part = denial.carry;
    return denial.rate.outcome(item.hits, found, nowMicros, true);
  }
  const { rate } = item;
  return {
    limited: true,
    remaining: rate.kind === 'window' ? rate.remaining(true, denial.used) : 0,
    waitMicros: denial.untilMicros - nowMicros,
    used: denial.used,
    forgiven: 0,
    cached: true,
  };
}

/** Returns the denial that a limited `outcome` of a window implies. The take was sent at `askedMicros`. */
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
 * Returns the state of the token bucket of a limited item, in local time, to be used for `maxAgeMicros`. If several
 * states are possible, returns the fullest one, so that no reported wait is too long.
 */
export function tokenDenial(
  rate: TokenBucketRate,
  hits: number,
  outcome: TakeOutcome,
  askedMicros: number,
  maxAgeMicros: number,
): TokenDenial {
  const { whole, part } = rate.minTimeToFill(hits, outcome);
  return {
    kind: 'token_bucket',
    rate,
    hits: Math.max(hits, 1),
    untilMicros: askedMicros + Math.min(outcome.waitMicros, maxAgeMicros),
    fullAtMicros: askedMicros + whole,
    carry: part,
  };
}
