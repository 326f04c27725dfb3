import type { WindowRate } from './fixed-window.js';
import type { TokenBucketRate } from './token-bucket.js';
import { UNIT_MICROS } from './window-unit.js';

export { MAX_UINT32 } from './rate-algorithm.js';

/** Longest time a bucket may need to fill; keeps `now + time to fill` below 2^53 µs with two centuries to spare. */
export const MAX_FILL_MICROS = 100 * 365 * UNIT_MICROS.day;

/**
 * How much of what a rule allows. `kind` tells them apart where a rate is read or shown; deciding asks an
 * RateAlgorithm.
 */
export type Rate = TokenBucketRate | WindowRate;

/**
 * Whether hits are a charge: usage that already happened (an LLM's tokens, the bytes of a response), which a rule with
 * `allow_debt` takes whole however little is left. Envoy's `apply_on_stream_done` sends them like any other hits, so
 * any number above 1 is one. So is what was admitted without the store, see `chargingRate`.
 */
export function isCharge(
  { minChargeHits }: Pick<Rate, 'minChargeHits'>,
  hits: number,
  refund: boolean,
): boolean {
  return hits >= minChargeHits && !refund;
}

/**
 * Whether hits can never pass, however long a caller waits: more than a full bucket or an empty window holds. A charge
 * always passes. A peek asks whether one more would, which a limit of 0 never lets.
 */
export function isBeyondLimit(
  rate: Pick<Rate, 'minChargeHits' | 'reportedLimit'>,
  hits: number,
  refund: boolean,
): boolean {
  return !refund && Math.max(hits, 1) > rate.reportedLimit && !isCharge(rate, hits, refund);
}
