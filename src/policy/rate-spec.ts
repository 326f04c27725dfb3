import { type WindowRate, windowRate } from '../limiter/fixed-window.js';
import type { Rate } from '../limiter/rate.js';
import { type TokenBucketRate, tokenBucketRate } from '../limiter/token-bucket.js';

/** The numbers of a token bucket; those that follow from them are not among them. */
export type TokenBucketSpec = Pick<
  TokenBucketRate,
  'kind' | 'maxTokens' | 'tokensPerFill' | 'fillIntervalMicros' | 'maxDebt'
>;

/** What a fixed window is made from. */
export interface WindowSpec
  extends Pick<WindowRate, 'kind' | 'unit' | 'multiplier' | 'requestsPerUnit' | 'maxDebt'> {
  /** IANA name of the time zone of its calendar; undefined for windows without one. */
  readonly timeZone: string | undefined;
}

/** How much a limit lets through, as plain data. Validated: see {@link tokenBucketRate} and {@link windowRate}. */
export type RateSpec = TokenBucketSpec | WindowSpec;

/**
 * The rate to decide by. `allOrNothing`: whether it is that of a limit of a list, see {@link WindowRate.allOrNothing}.
 */
export function rateOf(spec: RateSpec, allOrNothing: boolean): Rate {
  if (spec.kind === 'token_bucket') {
    return tokenBucketRate(spec.maxTokens, spec.tokensPerFill, spec.fillIntervalMicros, spec.maxDebt);
  }
  const { unit, requestsPerUnit, multiplier, maxDebt, timeZone } = spec;
  return windowRate(unit, requestsPerUnit, { multiplier, maxDebt, timeZone, allOrNothing });
}

/** What {@link rateOf} made a rate from. */
export function rateSpecOf(rate: Rate): RateSpec {
  if (rate.kind === 'token_bucket') {
    const { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt } = rate;
    return { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt };
  }
  const { kind, unit, multiplier, requestsPerUnit, maxDebt, calendar } = rate;
  return { kind, unit, multiplier, requestsPerUnit, maxDebt, timeZone: calendar?.timeZone };
}
