import { type WindowRate, windowRate } from '../limiter/fixed-window.js';
import type { Rate } from '../limiter/rate.js';
import { type TokenBucketRate, tokenBucketRate } from '../limiter/token-bucket.js';

/** The independent numbers of a token bucket. */
export type TokenBucketSpec = Pick<
  TokenBucketRate,
  'kind' | 'maxTokens' | 'tokensPerFill' | 'fillIntervalMicros' | 'maxDebt'
>;

/** The independent settings of a fixed window. */
export interface WindowSpec
  extends Pick<WindowRate, 'kind' | 'unit' | 'multiplier' | 'requestsPerUnit' | 'maxDebt'> {
  /** IANA name of the time zone of a calendar window; undefined for other windows. */
  readonly timeZone: string | undefined;
}

/** The rate of a limit as plain, validated data; see {@link tokenBucketRate} and {@link windowRate}. */
export type RateSpec = TokenBucketSpec | WindowSpec;

/**
 * Returns the rate for decisions. `allOrNothing`: whether it belongs to a list of limits, see
 * {@link WindowRate.allOrNothing}.
 */
export function rateOf(spec: RateSpec, allOrNothing: boolean): Rate {
  if (spec.kind === 'token_bucket') {
    return tokenBucketRate(spec.maxTokens, spec.tokensPerFill, spec.fillIntervalMicros, spec.maxDebt);
  }
  const { unit, requestsPerUnit, multiplier, maxDebt, timeZone } = spec;
  return windowRate(unit, requestsPerUnit, { multiplier, maxDebt, timeZone, allOrNothing });
}

/** Returns the specification of a rate, the inverse of {@link rateOf}. */
export function rateSpecOf(rate: Rate): RateSpec {
  if (rate.kind === 'token_bucket') {
    const { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt } = rate;
    return { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt };
  }
  const { kind, unit, multiplier, requestsPerUnit, maxDebt, calendar } = rate;
  return { kind, unit, multiplier, requestsPerUnit, maxDebt, timeZone: calendar?.timeZone };
}
