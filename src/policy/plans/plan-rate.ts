import { type WindowRate, windowRate } from '../../limiter/fixed-window.js';
import { type ConcurrencyRate, concurrencyRate } from '../../limiter/holds/concurrency.js';
import type { Rate } from '../../limiter/rate.js';
import { type LeaseTerms, minChargeHitsOf } from '../../limiter/rate-algorithm.js';
import { type TokenBucketRate, tokenBucketRate } from '../../limiter/token-bucket.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from '../../limiter/window-unit.js';
import { FIRST_COLUMN } from './plan-table.js';

/** What all limits over time have. */
interface TimedSpec {
  /** Absent for a limit that does not lease; see policy/leases.ts. */
  readonly lease?: LeaseTerms;
}

/** The independent numbers of a token bucket. */
interface TokenBucketSpec
  extends TimedSpec,
    Pick<
      TokenBucketRate,
      'kind' | 'maxTokens' | 'tokensPerFill' | 'fillIntervalMicros' | 'maxDebt' | 'minChargeHits'
    > {}

/** The independent settings of a fixed window. */
interface WindowSpec
  extends TimedSpec,
    Pick<WindowRate, 'kind' | 'unit' | 'multiplier' | 'requestsPerUnit' | 'maxDebt' | 'minChargeHits'> {
  /** IANA name of the time zone of a calendar window; undefined for other windows. */
  readonly timeZone: string | undefined;
}

/** The independent settings of a limit on concurrent requests. */
type ConcurrencySpec = Pick<ConcurrencyRate, 'kind' | 'max'>;

/**
 * The rate of a limit as plain, validated data; see {@link tokenBucketRate}, {@link windowRate} and
 * {@link concurrencyRate}.
 */
export type RateSpec = TokenBucketSpec | WindowSpec | ConcurrencySpec;

/**
 * Returns the rate for decisions. `countsOnlyAllowed`: whether it belongs to a list of limits or has holds, see
 * {@link WindowRate.countsOnlyAllowed}. Limits with leases never count denied hits.
 */
export function rateOf(spec: RateSpec, countsOnlyAllowed: boolean): Rate {
  if (spec.kind === 'concurrency') return concurrencyRate(spec.max);
  if (spec.kind === 'token_bucket') {
    const { maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits, lease } = spec;
    return tokenBucketRate(maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits, lease);
  }
  const { requestsPerUnit, multiplier, maxDebt, minChargeHits, timeZone, lease } = spec;
  // Answers look up the unit, and the lookup takes longer if the string comes from another thread.
  const unit = WINDOW_UNITS.find((known) => known === spec.unit) ?? spec.unit;
  return windowRate(unit, requestsPerUnit, {
    multiplier,
    maxDebt,
    minChargeHits,
    timeZone,
    countsOnlyAllowed: countsOnlyAllowed || lease !== undefined,
    lease,
  });
}

/** The inverse of {@link rateOf}. */
export function rateSpecOf(rate: Rate): RateSpec {
  if (rate.kind === 'concurrency') return { kind: rate.kind, max: rate.max };
  const lease = rate.lease === undefined ? {} : { lease: rate.lease };
  if (rate.kind === 'token_bucket') {
    const { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits } = rate;
    return { kind, maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits, ...lease };
  }
  const { kind, unit, multiplier, requestsPerUnit, maxDebt, minChargeHits, calendar } = rate;
  const timeZone = calendar?.timeZone;
  return { kind, unit, multiplier, requestsPerUnit, maxDebt, minChargeHits, timeZone, ...lease };
}

/** The keys of a limit that can read their value from a plan. */
export type PlanKey =
  | 'max_tokens'
  | 'tokens_per_fill'
  | 'fill_interval'
  | 'requests_per_unit'
  | 'unit'
  | 'burst'
  | 'max'
  | 'amount';

/**
 * The numbers of a limit, by their key in the policy. Times are in microseconds. A unit is its index in WINDOW_UNITS.
 */
export type LimitNumbers = Readonly<Partial<Record<PlanKey, number>>>;

/** A key of a limit that reads its value from the plan. */
export interface PlanColumn {
  readonly key: PlanKey;
  /** The column of the plan, from 0. */
  readonly column: number;
  /** Name of the column. */
  readonly name: string;
  /** The number for rows without the value; NaN if the value is required. */
  readonly default: number;
}

/** The keys of a limit that set its rate, as plain data. */
export interface RateKeys {
  readonly numbers: LimitNumbers;
  /** The settings of a limit with `requests_per_unit`; undefined for a `token_bucket` and for `concurrency`. */
  readonly units: RateUnits | undefined;
  /** The maximum debt; `capacity` if the policy does not set it. */
  readonly maxDebt: number | 'capacity';
}

interface RateUnits {
  readonly multiplier: number;
  /** Whether the requests are limited by a token bucket instead of a window. */
  readonly isBucket: boolean;
  readonly timeZone: string | undefined;
}

/** A limit whose numbers may come from the plan of a customer. Its own numbers apply to customers without a row. */
export interface PlanRate extends RateKeys {
  /** The numbers that come from the plan. */
  readonly columns: readonly PlanColumn[];
}

/** Returns the keys that read their value from the plan, each with the name of the value: `max_tokens` from `burst`. */
export function columnNames({ columns }: PlanRate): readonly (readonly [key: string, value: string])[] {
  return columns.map(({ key, name }) => [key, name]);
}

/** The numbers of a limit for a row of values; NaN for numbers that the row lacks. */
export function numbersOf({ numbers, columns }: PlanRate, values: Float64Array): LimitNumbers {
  const own = columns.map(({ key, column, default: standard }) => {
    const value = values[FIRST_COLUMN + column] as number;
    return [key, Number.isNaN(value) ? standard : value];
  });
  return { ...numbers, ...Object.fromEntries(own) };
}

/** Returns whether a row of values has all numbers that a limit reads from a plan, except those with a default. */
export function hasNumbers(rate: PlanRate, values: Float64Array): boolean {
  return !Object.values(numbersOf(rate, values)).some(Number.isNaN);
}

/** The row was checked when it was read. */
export function planRateSpec(rate: PlanRate, values: Float64Array, hasHold: boolean): RateSpec {
  return rateSpecOfKeys({ ...rate, numbers: numbersOf(rate, values) }, hasHold);
}

/** For a limit with `hold`, hits are never a charge. */
export function rateSpecOfKeys({ numbers, units, maxDebt: most }: RateKeys, hasHold: boolean): RateSpec {
  if (numbers.max !== undefined) return { kind: 'concurrency', max: numbers.max };
  const debtOf = (capacity: number): { readonly maxDebt: number; readonly minChargeHits: number } => {
    const maxDebt = most === 'capacity' ? capacity : most;
    return { maxDebt, minChargeHits: hasHold ? Number.POSITIVE_INFINITY : minChargeHitsOf(maxDebt) };
  };
  const bucket = (maxTokens: number, tokensPerFill: number, fillIntervalMicros: number): RateSpec => {
    return { kind: 'token_bucket', maxTokens, tokensPerFill, fillIntervalMicros, ...debtOf(maxTokens) };
  };
  if (units === undefined) {
    return bucket(numbers.max_tokens ?? 0, numbers.tokens_per_fill ?? 1, numbers.fill_interval ?? 0);
  }
  const { multiplier, timeZone, isBucket } = units;
  const { requests_per_unit: requestsPerUnit = 0, burst = requestsPerUnit } = numbers;
  const unit = WINDOW_UNITS[numbers.unit ?? 0] as WindowUnit;
  return isBucket && requestsPerUnit > 0
    ? bucket(burst, requestsPerUnit, UNIT_MICROS[unit] * multiplier)
    : { kind: 'window', unit, multiplier, requestsPerUnit, timeZone, ...debtOf(requestsPerUnit) };
}
