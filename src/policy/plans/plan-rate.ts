import { minChargeHitsOf } from '../../limiter/rate-algorithm.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from '../../limiter/window-unit.js';
import type { RateSpec } from '../rate-spec.js';
import { FIRST_COLUMN } from './plan-table.js';

/** A number of a rate: a fixed one, or the column of the plan that has it. */
export type PlanNumber = number | PlanColumn;

/** A column of the plan, from 0, and the number for rows without a value; NaN if they need one. */
export interface PlanColumn {
  readonly column: number;
  /** Name of the column. */
  readonly name: string;
  readonly default: number;
}

/** A `token_bucket`. */
interface PlannedBucket {
  readonly kind: 'token_bucket';
  readonly maxTokens: PlanNumber;
  readonly tokensPerFill: PlanNumber;
  readonly fillIntervalMicros: PlanNumber;
  readonly maxDebt: number | 'capacity';
  /** `hold.amount`; undefined without it. */
  readonly holdAmount: PlanNumber | undefined;
}

/** Requests per unit: a window, or a token bucket. */
interface PlannedUnits {
  readonly kind: 'units';
  readonly requestsPerUnit: PlanNumber;
  /** Index of the unit in WINDOW_UNITS. */
  readonly unit: PlanNumber;
  readonly multiplier: number;
  /** Whether the requests are limited by a token bucket instead of a window. */
  readonly isBucket: boolean;
  readonly burst: PlanNumber | undefined;
  readonly timeZone: string | undefined;
  readonly maxDebt: number | 'capacity';
  /** `hold.amount`; undefined without it. */
  readonly holdAmount: PlanNumber | undefined;
}

interface PlannedConcurrency {
  readonly kind: 'concurrency';
  readonly max: PlanNumber;
}

/** A rate whose numbers may come from the plan of a customer, as plain data. */
export type PlannedRate = PlannedBucket | PlannedUnits | PlannedConcurrency;

/** Names of the fields that may come from a plan, as in the policy file. */
const FIELD_NAMES: ReadonlyMap<string, string> = new Map([
  ['maxTokens', 'max_tokens'],
  ['tokensPerFill', 'tokens_per_fill'],
  ['fillIntervalMicros', 'fill_interval'],
  ['requestsPerUnit', 'requests_per_unit'],
  ['unit', 'unit'],
  ['burst', 'burst'],
  ['max', 'max'],
  ['holdAmount', 'amount'],
]);

/** Returns the fields that come from a plan, each with the name of the value: `max_tokens` from `burst`. */
export function plannedFields(rate: PlannedRate): readonly (readonly [field: string, value: string])[] {
  return Object.entries(rate as object).flatMap(([key, from]: [string, unknown]) => {
    const field = FIELD_NAMES.get(key);
    if (field === undefined || typeof from !== 'object') return [];
    return [[field, (from as PlanColumn).name] as const];
  });
}

/** Returns a number for a row of values. */
export function planNumber(from: PlanNumber, values: Float64Array): number {
  if (typeof from === 'number') return from;
  const value = values[FIRST_COLUMN + from.column] as number;
  return Number.isNaN(value) ? from.default : value;
}

/** Returns whether a row of values has all numbers of a rate that come from a plan and have no default. */
export function hasNumbers(rate: PlannedRate, values: Float64Array): boolean {
  return Object.values(rate as object).every(
    (from: unknown) => typeof from !== 'object' || !Number.isNaN(planNumber(from as PlanColumn, values)),
  );
}

/** Returns the rate for a row of values, which was checked when it was read. */
export function plannedRateSpec(rate: PlannedRate, values: Float64Array): RateSpec {
  const numberOf = (from: PlanNumber): number => planNumber(from, values);
  if (rate.kind === 'concurrency') return { kind: rate.kind, max: numberOf(rate.max) };
  const debtOf = (capacity: number): { readonly maxDebt: number; readonly minChargeHits: number } => {
    const maxDebt = rate.maxDebt === 'capacity' ? capacity : rate.maxDebt;
    return { maxDebt, minChargeHits: minChargeHitsOf(maxDebt) };
  };
  if (rate.kind === 'token_bucket') {
    const maxTokens = numberOf(rate.maxTokens);
    return {
      kind: rate.kind,
      maxTokens,
      tokensPerFill: numberOf(rate.tokensPerFill),
      fillIntervalMicros: numberOf(rate.fillIntervalMicros),
      ...debtOf(maxTokens),
    };
  }
  const { multiplier, timeZone } = rate;
  const unit = WINDOW_UNITS[numberOf(rate.unit)] as WindowUnit;
  const requests = numberOf(rate.requestsPerUnit);
  if (!rate.isBucket || requests === 0) {
    return { kind: 'window', unit, multiplier, requestsPerUnit: requests, timeZone, ...debtOf(requests) };
  }
  const maxTokens = rate.burst === undefined ? requests : numberOf(rate.burst);
  return {
    kind: 'token_bucket',
    maxTokens,
    tokensPerFill: requests,
    fillIntervalMicros: UNIT_MICROS[unit] * multiplier,
    ...debtOf(maxTokens),
  };
}
