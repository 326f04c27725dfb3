import { type WindowRate, windowRate } from '../limiter/fixed-window.js';
import { type ConcurrencyRate, concurrencyRate } from '../limiter/holds/concurrency.js';
import type { Rate } from '../limiter/rate.js';
import { type TokenBucketRate, tokenBucketRate } from '../limiter/token-bucket.js';
import { WINDOW_UNITS } from '../limiter/window-unit.js';

/** The independent numbers of a token bucket. */
export type TokenBucketSpec = Pick<
  TokenBucketRate,
  'kind' | 'maxTokens' | 'tokensPerFill' | 'fillIntervalMicros' | 'maxDebt' | 'minChargeHits'
>;

/** The independent settings of a fixed window. */
export interface WindowSpec
  extends Pick<WindowRate, 'kind' | 'unit' | 'multiplier' | 'requestsPerUnit' | 'maxDebt' | 'minChargeHits'> {
  /** IANA name of the time zone of a calendar window; undefined for other windows. */
  readonly timeZone: string | undefined;
}

/** The independent settings of a limit on concurrent requests. */
export type ConcurrencySpec = Pick<ConcurrencyRate, 'kind' | 'max'>;

/**
 * The rate of a limit as plain, validated data; see {@link tokenBucketRate}, {@link windowRate} and
 * {@link concurrencyRate}.
 */
export type RateSpec = TokenBucketSpec | WindowSpec | ConcurrencySpec;

/**
 * Returns the rate for decisions. `allOrNothing`: whether it belongs to a list of limits or has holds, see
 * {@link WindowRate.allOrNothing}.
 */
export function rateOf(spec: RateSpec, allOrNothing: boolean): Rate {
  if (spec.kind === 'concurrency') return concurrencyRate(spec.max);
  if (spec.kind === 'token_bucket') {
    const { maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits } = spec;
    return tokenBucketRate(maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits);
  }
  const { requestsPerUnit, multiplier, maxDebt, minChargeHits, timeZone } = spec;
  // Answers look up the unit, which takes longer with a text from another thread.
  const unit = WINDOW_UNITS.find((known) => known === spec.unit) ?? spec.unit;
  return windowRate(unit, requestsPerUnit, { multiplier, maxDebt, minChargeHits, timeZone, allOrNothing });
}

/** Returns the specification of a rate, the inverse of {@link rateOf}. */
export function rateSpecOf(rate: Rate): RateSpec {
  if (rate.kind === 'concurrency') return { kind: rate.kind, max: rate.max };
  if (rate.kind === 'token_bucket') {
    const { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits } = rate;
    return { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits };
  }
  const { kind, unit, multiplier, requestsPerUnit, maxDebt, minChargeHits, calendar } = rate;
  const timeZone = calendar?.timeZone;
  return { kind, unit, multiplier, requestsPerUnit, maxDebt, minChargeHits, timeZone };
}
