import { CalendarWindows, isCalendarUnit } from './calendar.js';
import { UNIT_MICROS, WINDOW_UNITS, type WindowUnit } from './window-unit.js';

/** Longest time a bucket may need to fill; keeps `now + time to fill` below 2^53 µs with two centuries to spare. */
export const MAX_FILL_MICROS = 100 * 365 * UNIT_MICROS.day;
/** Largest value of the 32 bit fields of a token bucket. */
export const MAX_UINT32 = 0xffff_ffff;

/**
 * A token bucket (Envoy's envoy.type.v3.TokenBucket), reduced for exact integer arithmetic (GCRA).
 *
 * One token takes `p / q` µs to refill, in lowest terms. A span of time is kept as whole microseconds and a carry of
 * 1/q µs, 0 <= carry < q, so that no rounding ever adds or loses a part of a token.
 */
export interface TokenBucketRate {
  readonly kind: 'token_bucket';
  /** Capacity, 1 to 2^32-1. */
  readonly maxTokens: number;
  /** Tokens added per `fillIntervalMicros`. */
  readonly tokensPerFill: number;
  readonly fillIntervalMicros: number;
  readonly p: number;
  readonly q: number;
  /** Time an empty bucket needs to fill: whole µs and carry. */
  readonly fillWhole: number;
  readonly fillCarry: number;
  /** Tokens that charges may take from an empty bucket (`max_debt`); 0: no debt, and no request is a charge. */
  readonly maxDebt: number;
  /** Time a bucket needs to fill from its deepest debt: that of an empty one where there is none. */
  readonly debtWhole: number;
  readonly debtCarry: number;
}

/**
 * A fixed window: at most `requestsPerUnit` hits in each. Aligned to the epoch, so many `lengthMicros` each, or with
 * `calendar` the days, weeks, months or years of a time zone.
 */
export interface WindowRate {
  readonly kind: 'window';
  readonly unit: WindowUnit;
  /** Units to a window (`unit_multiplier`); 1 with a calendar. */
  readonly multiplier: number;
  readonly requestsPerUnit: number;
  /** Of a calendar's windows, which differ, the nominal length. */
  readonly lengthMicros: number;
  readonly calendar: CalendarWindows | undefined;
  /**
   * Counts no hits of a denied request, whatever other windows do: a limit of a list, which is decided all or nothing.
   */
  readonly allOrNothing: boolean;
  /** Hits that charges may count past a used up window, to be paid by the next one: 0 to `requestsPerUnit`. */
  readonly maxDebt: number;
}

export type Rate = TokenBucketRate | WindowRate;

/** Greatest common divisor of two positive integers. */
function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/** Whole microseconds that `tokens` take to refill: floor(tokens * p / q). Exact for every tokens <= maxTokens. */
export function costWhole(rate: { readonly p: number; readonly q: number }, tokens: number): number {
  const product = tokens * rate.p;
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / rate.q);
  return Number((BigInt(tokens) * BigInt(rate.p)) / BigInt(rate.q));
}

/** The rest of {@link costWhole}, in 1/q µs: tokens * p mod q. */
export function costCarry(rate: { readonly p: number; readonly q: number }, tokens: number): number {
  if (rate.q === 1) return 0;
  const product = tokens * rate.p;
  if (product <= Number.MAX_SAFE_INTEGER) return product % rate.q;
  return Number((BigInt(tokens) * BigInt(rate.p)) % BigInt(rate.q));
}

/**
 * Whether hits are a charge: usage that already happened (an LLM's tokens, the bytes of a response), which a rule with
 * `allow_debt` takes whole however little is left. Envoy's `apply_on_stream_done` sends them like any other hits, so
 * any number above 1 is one.
 */
export function isCharge({ maxDebt }: Rate, hits: number, refund: boolean): boolean {
  return maxDebt > 0 && hits > 1 && !refund;
}

/**
 * The hits of a charge that a bucket can take on at all, or of a refund that it can take back: no more than capacity
 * and debt.
 */
export function chargedHits({ maxTokens, maxDebt }: TokenBucketRate, hits: number): number {
  return Math.min(hits, maxTokens + maxDebt);
}

/**
 * The tokens of a charge that were forgiven: those past {@link chargedHits}, and what took `overMicros` too long to
 * refill, told to the nearest token, or to those of a microsecond, as buckets refill all the time.
 */
export function forgivenTokens(rate: TokenBucketRate, hits: number, overMicros: number): number {
  const over = Math.round((overMicros * rate.q) / rate.p);
  return Math.min(hits, hits - chargedHits(rate, hits) + over);
}

/** {@link costWhole} of `hits`; more than the bucket holds cost more than it takes to fill, so that they never fit. */
export function askedWhole(rate: TokenBucketRate, hits: number): number {
  return hits > rate.maxTokens ? rate.fillWhole + 1 : costWhole(rate, hits);
}

/** {@link costCarry} of `hits`; see {@link askedWhole}. */
export function askedCarry(rate: TokenBucketRate, hits: number): number {
  return hits > rate.maxTokens ? 0 : costCarry(rate, hits);
}

/**
 * Builds a token bucket rate from already validated numbers: `maxTokens` and `tokensPerFill` integers from 1 to 2^32-1,
 * `fillIntervalMicros` an integer >= 1000, `maxDebt` an integer from 0 to 2^32-1, and a time to fill, from the deepest
 * debt, of at most {@link MAX_FILL_MICROS}.
 */
export function tokenBucketRate(
  maxTokens: number,
  tokensPerFill: number,
  fillIntervalMicros: number,
  maxDebt = 0,
): TokenBucketRate {
  const divisor = gcd(fillIntervalMicros, tokensPerFill);
  const reduced = { p: fillIntervalMicros / divisor, q: tokensPerFill / divisor };
  return {
    kind: 'token_bucket',
    maxTokens,
    tokensPerFill,
    fillIntervalMicros,
    p: reduced.p,
    q: reduced.q,
    fillWhole: costWhole(reduced, maxTokens),
    fillCarry: costCarry(reduced, maxTokens),
    maxDebt,
    debtWhole: costWhole(reduced, maxTokens + maxDebt),
    debtCarry: costCarry(reduced, maxTokens + maxDebt),
  };
}

/** How a window differs from one plain unit. */
export interface WindowOptions {
  /** Units to a window, an integer >= 1; default 1. */
  readonly multiplier?: number;
  /** IANA name of a time zone whose days, weeks, months or years the windows are; see {@link CalendarWindows}. */
  readonly timeZone?: string | undefined;
  /** See {@link WindowRate.maxDebt}; default 0. */
  readonly maxDebt?: number;
  /** See {@link WindowRate.allOrNothing}; default false. */
  readonly allOrNothing?: boolean;
}

/** Builds a fixed window from already validated numbers; its length is at most {@link MAX_FILL_MICROS}. */
export function windowRate(
  unit: WindowUnit,
  requestsPerUnit: number,
  options: WindowOptions = {},
): WindowRate {
  const { multiplier = 1, timeZone, maxDebt = 0, allOrNothing = false } = options;
  const calendar =
    timeZone === undefined || !isCalendarUnit(unit) ? undefined : CalendarWindows.of(timeZone, unit);
  const lengthMicros = UNIT_MICROS[unit] * multiplier;
  return { kind: 'window', unit, multiplier, requestsPerUnit, lengthMicros, calendar, allOrNothing, maxDebt };
}

/**
 * Whether hits of denied requests count in a bucket of this rate: in windows, where the store's `countDeniedHits` says
 * so, but for lists of limits, and for debts, which must not grow by what was denied.
 */
export function countsDenied(rate: Rate, countDeniedHits: boolean): boolean {
  return countDeniedHits && rate.kind === 'window' && !rate.allOrNothing && rate.maxDebt === 0;
}

/** Start of the window that holds `micros`, wall clock microseconds. */
export function windowStart({ calendar, lengthMicros }: WindowRate, micros: number): number {
  return calendar === undefined ? micros - (micros % lengthMicros) : calendar.startAt(micros);
}

/** End of the window that starts at `start`, which is the start of the next one. */
export function windowEnd({ calendar, lengthMicros }: WindowRate, start: number): number {
  return calendar === undefined ? start + lengthMicros : calendar.endOf(start);
}

/**
 * The unit to report for a rate: that of a calendar's window; else the one as long as the window, or as the time an
 * empty token bucket needs to fill, if there is one.
 */
export function reportedUnit(rate: Rate): WindowUnit | undefined {
  if (rate.kind === 'window') {
    if (rate.multiplier === 1) return rate.unit;
    return WINDOW_UNITS.find((unit) => UNIT_MICROS[unit] === rate.lengthMicros);
  }
  if (rate.fillCarry !== 0) return undefined;
  return WINDOW_UNITS.find((unit) => UNIT_MICROS[unit] === rate.fillWhole);
}

/** The number to report as a rate's limit: capacity of a bucket, hits of a window. */
export function reportedLimit(rate: Rate): number {
  return rate.kind === 'window' ? rate.requestsPerUnit : rate.maxTokens;
}
