import { windowRate } from '../limiter/fixed-window.js';
import { concurrencyRate } from '../limiter/holds/concurrency.js';
import type { Rate } from '../limiter/rate.js';
import { tokenBucketRate } from '../limiter/token-bucket.js';

/** Unit of {@link ClassSpec.keep} for shares: a thousandth of a percent. */
export const SHARE_UNITS = 100_000;

/** The classes of callers that share the bucket of a limit (`priorities`), as plain data. */
export interface PrioritySpec {
  /** Key of the entry whose value names the class. The value is not part of the bucket's name. */
  readonly by: string;
  /** In file order. */
  readonly classes: readonly ClassSpec[];
  /** Name of the class of callers with any other value, or without the entry. */
  readonly unknown: string;
}

/** A class, and the part of the limit that its requests leave to the other classes. */
export interface ClassSpec {
  readonly name: string;
  /** A number of hits, or with `isShare` a share of the limit in {@link SHARE_UNITS}. */
  readonly keep: number;
  readonly isShare: boolean;
}

/** Returns the hits that a class leaves in a bucket of this capacity. A share rounds down. */
export function keptHits({ keep, isShare }: ClassSpec, capacity: number): number {
  // Exact: the product is below 2^32 * 100,000, and the quotient differs from a whole number by 1/100,000 or more.
  return isShare ? Math.floor((capacity * keep) / SHARE_UNITS) : keep;
}

/** Returns the class of callers with this value of the entry; undefined if they do not send the entry. */
export function classOf({ classes, unknown }: PrioritySpec, value: string | undefined): ClassSpec {
  const named = classes.find(({ name }) => name === value) ?? classes.find(({ name }) => name === unknown);
  return named as ClassSpec;
}

/** Returns the smallest capacity of a bucket in which a class can have `used` hits in use. */
export function capacityFor({ keep, isShare }: ClassSpec, used: number): number {
  if (!isShare || used < 1) return used + (isShare ? 0 : keep);
  return Math.floor(((used - 1) * SHARE_UNITS) / (SHARE_UNITS - keep)) + 1;
}

/** Formats what a class keeps, as in the policy: `50%` or `20`. */
export function keptText({ keep, isShare }: ClassSpec): string {
  return isShare ? `${(keep * 100) / SHARE_UNITS}%` : String(keep);
}

/**
 * Returns the limit of a class that leaves `kept` hits in the bucket of `rate`. Both use the same bucket.
 *
 * The state of a token bucket is the time at which it is full. A bucket with `kept` fewer tokens is full at the same
 * time, and owes up to `kept` tokens if other classes took them. No request of the class is a charge, so the class
 * itself never makes a debt. A window counts hits and a concurrency limit counts slots, whatever the limit is.
 */
export function classRate(rate: Rate, kept: number): Rate {
  if (kept === 0) return rate;
  if (rate.kind === 'concurrency') return concurrencyRate(rate.max - kept);
  if (rate.kind === 'token_bucket') {
    const { maxTokens, tokensPerFill, fillIntervalMicros, maxDebt, minChargeHits } = rate;
    return tokenBucketRate(
      maxTokens - kept,
      tokensPerFill,
      fillIntervalMicros,
      maxDebt + kept,
      minChargeHits,
    );
  }
  const { unit, requestsPerUnit, multiplier, calendar, minChargeHits, countsOnlyAllowed } = rate;
  const timeZone = calendar?.timeZone;
  return windowRate(unit, requestsPerUnit - kept, { multiplier, timeZone, minChargeHits, countsOnlyAllowed });
}
