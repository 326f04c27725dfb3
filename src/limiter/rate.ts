/** Units of `rate_limit.unit`; month is 30 and year 365 days, as in envoyproxy/ratelimit. */
export const WINDOW_UNITS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'] as const;
export type WindowUnit = (typeof WINDOW_UNITS)[number];

const SECOND = 1_000_000;
const DAY = 86_400 * SECOND;

/** Length of each unit in microseconds. */
export const UNIT_MICROS: Readonly<Record<WindowUnit, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3600 * SECOND,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};

/** Longest time a bucket may need to fill; keeps `now + time to fill` below 2^53 µs with two centuries to spare. */
export const MAX_FILL_MICROS = 100 * 365 * DAY;
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
}

/** A fixed window aligned to the epoch: at most `requestsPerUnit` hits in each unit. */
export interface WindowRate {
  readonly kind: 'window';
  readonly unit: WindowUnit;
  readonly requestsPerUnit: number;
  readonly lengthMicros: number;
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
 * `fillIntervalMicros` an integer >= 1000, and a time to fill of at most {@link MAX_FILL_MICROS}.
 */
export function tokenBucketRate(
  maxTokens: number,
  tokensPerFill: number,
  fillIntervalMicros: number,
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
  };
}

/** Builds a fixed window of one unit. */
export function windowRate(unit: WindowUnit, requestsPerUnit: number): WindowRate {
  return { kind: 'window', unit, requestsPerUnit, lengthMicros: UNIT_MICROS[unit] };
}

/**
 * The unit to report for a rate: a window's own; for a token bucket the unit equal to the time an empty bucket needs to
 * fill, if there is one.
 */
export function reportedUnit(rate: Rate): WindowUnit | undefined {
  if (rate.kind === 'window') return rate.unit;
  if (rate.fillCarry !== 0) return undefined;
  return WINDOW_UNITS.find((unit) => UNIT_MICROS[unit] === rate.fillWhole);
}

/** The number to report as a rate's limit: capacity of a bucket, hits of a window. */
export function reportedLimit(rate: Rate): number {
  return rate.kind === 'window' ? rate.requestsPerUnit : rate.maxTokens;
}
