import type { WindowRate } from './fixed-window.js';
import type { ConcurrencyRate } from './holds/concurrency.js';
import type { TokenBucketRate } from './token-bucket.js';

/** A limit over time, in contrast to a limit on concurrent requests. */
export type TimedRate = TokenBucketRate | WindowRate;

/**
 * The rate of a rule. `kind` distinguishes the algorithms where a rate is read or shown; deciding uses the
 * RateAlgorithm interface.
 */
export type Rate = TimedRate | ConcurrencyRate;

/**
 * Returns whether hits are a charge: usage that already happened, such as the tokens of an LLM or the bytes of a
 * response. A rule with `allow_debt` takes a charge completely, however little remains. Envoy's `apply_on_stream_done`
 * sends a charge like any other hits, so any number above 1 is a charge.
 */
export function isCharge(
  { minChargeHits }: Pick<Rate, 'minChargeHits'>,
  hits: number,
  refund: boolean,
): boolean {
  return hits >= minChargeHits && !refund;
}

/**
 * Returns whether hits can never be allowed because they exceed the capacity of the bucket or the limit of the window.
 * A charge is always allowed. A peek asks for one hit, which a limit of 0 never allows.
 */
export function isBeyondLimit(
  rate: Pick<Rate, 'minChargeHits' | 'reportedLimit'>,
  hits: number,
  refund: boolean,
): boolean {
  return !refund && Math.max(hits, 1) > rate.reportedLimit && !isCharge(rate, hits, refund);
}
