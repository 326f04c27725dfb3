import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';
import type { WindowRate } from '../limiter/fixed-window.js';
import { isCharge } from '../limiter/rate.js';
import { TakeSnapshot } from '../limiter/running-bucket.js';
import type { TokenBucketRate } from '../limiter/token-bucket.js';

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

/** Reused: what an item is told that was not asked about. */
const found = new TakeSnapshot();

/** The outcome of an item that {@link isDenied}. */
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
 * The state of the token bucket that a limited item found, in local time: of what is possible the fullest, so that no
 * wait is told too long. Believed for `maxAgeMicros`.
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
