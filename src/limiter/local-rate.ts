import { type WindowRate, windowRate } from './fixed-window.js';
import { concurrencyRate } from './holds/concurrency.js';
import type { Rate } from './rate.js';
import { MAX_FILL_MICROS } from './rate-algorithm.js';
import { TokenBucketRate } from './token-bucket.js';

/** Resolution of a share: one millionth. */
const SHARE_UNITS = 1_000_000;

/** The share of a limit that one process enforces, as a fraction. */
interface Share {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/**
 * Returns the part of a rate that one process enforces while the store is unavailable: `share` (above 0, at most 1)
 * divided by `workers` (an integer >= 1). Capacity, refill rate, debt, hits of a window and slots are all scaled down.
 * If the limit is above 0, at least one token or hit remains. A maximum debt above 0 stays above 0, because otherwise
 * weir would deny charges instead of taking them. The refill rate has no such minimum. Returns `rate` itself if the
 * process enforces all of it.
 */
export function localRate(rate: Rate, share: number, workers: number): Rate {
  const millionths = Math.max(1, Math.round(share * SHARE_UNITS));
  if (millionths === SHARE_UNITS && workers === 1) return rate;
  const fraction = { numerator: BigInt(millionths), denominator: BigInt(SHARE_UNITS) * BigInt(workers) };
  if (rate.kind === 'concurrency') return concurrencyRate(scaleCount(rate.max, fraction));
  return rate.kind === 'window' ? localWindow(rate, fraction) : localBucket(rate, fraction);
}

/** Scales a count down and rounds down. The result is at least 1 unless the count is 0. */
function scaleCount(count: number, { numerator, denominator }: Share): number {
  return count === 0 ? 0 : Math.max(1, Number((BigInt(count) * numerator) / denominator));
}

function localWindow(rate: WindowRate, share: Share): WindowRate {
  return windowRate(rate.unit, scaleCount(rate.requestsPerUnit, share), {
    multiplier: rate.multiplier,
    timeZone: rate.calendar?.timeZone,
    maxDebt: scaleCount(rate.maxDebt, share),
    minChargeHits: rate.minChargeHits,
    countsOnlyAllowed: rate.countsOnlyAllowed,
  });
}

function localBucket(rate: TokenBucketRate, share: Share): TokenBucketRate {
  const maxTokens = scaleCount(rate.maxTokens, share);
  const maxDebt = scaleCount(rate.maxDebt, share);
  // One token takes p / q microseconds to refill.
  let p = BigInt(rate.refillNumerator) * share.denominator;
  let q = BigInt(rate.refillDenominator) * share.numerator;
  const slowest = BigInt(Math.floor(MAX_FILL_MICROS / (maxTokens + maxDebt)));
  // Clamp to the slowest representable rate.
  if (p > slowest * q) [p, q] = [slowest, 1n];
  const divisor = gcd(p, q);
  p /= divisor;
  q /= divisor;
  // Rounding up makes the refill slower by less than a microsecond for each token.
  if (p > BigInt(Number.MAX_SAFE_INTEGER)) [p, q] = [(p + q - 1n) / q, 1n];
  return new TokenBucketRate(maxTokens, Number(q), Number(p), maxDebt, rate.minChargeHits);
}

function gcd(a: bigint, b: bigint): bigint {
  let [one, other] = [a, b];
  while (other !== 0n) [one, other] = [other, one % other];
  return one;
}

/** Returns the same limit for settlements of holds: all hits are charges, down to the maximum debt. */
export function settlingRate(rate: Rate): Rate {
  if (rate.minChargeHits === 1 || rate.kind === 'concurrency') return rate;
  if (rate.kind === 'token_bucket') {
    const { maxTokens, tokensPerFill, fillIntervalMicros, maxDebt } = rate;
    return new TokenBucketRate(maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, 1);
  }
  const { unit, requestsPerUnit, multiplier, calendar, maxDebt, countsOnlyAllowed } = rate;
  const timeZone = calendar?.timeZone;
  return windowRate(unit, requestsPerUnit, {
    multiplier,
    timeZone,
    maxDebt,
    countsOnlyAllowed,
    minChargeHits: 1,
  });
}

/** Caches local rates. Each entry is dropped together with the original rate. */
export class LocalRates {
  readonly #workers: number;
  readonly #local = new WeakMap<Rate, Map<number, Rate>>();

  /** `workers`: number of processes that divide the share of a replica. */
  constructor(workers: number) {
    this.#workers = workers;
  }

  /** See {@link localRate}. */
  of(rate: Rate, share: number): Rate {
    let byShare = this.#local.get(rate);
    if (byShare === undefined) {
      byShare = new Map();
      this.#local.set(rate, byShare);
    }
    let local = byShare.get(share);
    if (local === undefined) {
      local = localRate(rate, share, this.#workers);
      byShare.set(share, local);
    }
    return local;
  }
}
