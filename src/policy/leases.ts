import type { Rate } from '../limiter/rate.js';
import { type LeaseTerms, MIN_LEASED_HITS } from '../limiter/rate-algorithm.js';
import type { RateSpec } from './plans/plan-rate.js';

/** Leases of a limit (`lease`), as plain data. */
export interface LeaseSpec extends LeaseTerms {
  /**
   * Whether a token bucket leaves out of its capacity what refills during a lease. Otherwise, tokens that a process
   * spends late would add to those that have refilled in the meantime.
   */
  readonly exact: boolean;
}

/**
 * Bounds of `for`, in microseconds, and of `max`. A call to Redis costs as much CPU time as about 50 decisions in
 * memory, so that with 1,000 tokens, it adds a few percent to each of them.
 */
export const LEASE_FOR = { min: 5000, max: 10_000_000 } as const;
export const LEASE_MAX = { min: 2, max: 10_000, default: 1000 } as const;

/** The refusal of a token bucket whose leases would leave too little of its capacity. Unlike others, `for` mends it. */
export const TOO_LITTLE_LEFT = `less than half of its capacity, or fewer than ${MIN_LEASED_HITS} tokens, would be left`;

/** A limit without its leases. */
interface UnleasedLimit {
  readonly rate: Rate | RateSpec | undefined;
  readonly lease: LeaseSpec | undefined;
  readonly hold: object | undefined;
  readonly priorities: object | undefined;
  readonly quotaMode: boolean;
  readonly nextLimit: string;
}

/** Returns why a limit cannot lease, as the end of a sentence with "because"; undefined if it can. */
export function leaseRefusal(limit: UnleasedLimit): string | undefined {
  const { rate, lease, hold, priorities, quotaMode, nextLimit } = limit;
  if (rate === undefined || lease === undefined) return 'it has no leases';
  if (rate.kind === 'concurrency') return 'slots are given back';
  if (hold !== undefined) return 'its tokens are given back';
  if (rate.maxDebt > 0) return 'charges are always allowed';
  if (priorities !== undefined) return 'its classes have different limits';
  if (quotaMode) return 'its denials depend on other quotas';
  if (nextLimit !== '') return 'requests over it take from another limit';
  if (rate.kind === 'window') return rate.requestsPerUnit === 0 ? 'it denies every request' : undefined;
  const { tokensPerFill, fillIntervalMicros, maxTokens } = rate;
  const isTooLong =
    2n * BigInt(tokensPerFill) * BigInt(lease.forMicros) > BigInt(maxTokens) * BigInt(fillIntervalMicros);
  // A bucket with fewer tokens never has the hits that a lease needs, so leases would only make it smaller.
  const isTooSmall = maxTokens - reservedTokens(rate, lease) < MIN_LEASED_HITS;
  return lease.exact && (isTooLong || isTooSmall) ? TOO_LITTLE_LEFT : undefined;
}

/** Returns the tokens that refill during a lease, rounded up. */
function reservedTokens(
  {
    tokensPerFill,
    fillIntervalMicros,
  }: { readonly tokensPerFill: number; readonly fillIntervalMicros: number },
  { forMicros }: LeaseTerms,
): number {
  const [refill, interval] = [BigInt(tokensPerFill) * BigInt(forMicros), BigInt(fillIntervalMicros)];
  return Number((refill + interval - 1n) / interval);
}

/** Returns the tokens by which its leases lower the capacity of a limit. */
export function loweredBy({
  rate,
  lease,
}: {
  readonly rate: Rate | undefined;
  readonly lease: LeaseSpec | undefined;
}): number {
  if (rate?.kind !== 'token_bucket' || rate.lease === undefined || lease?.exact !== true) return 0;
  return reservedTokens(rate, rate.lease);
}

/** Returns the rate of a limit, with its leases if it can lease. Every take of the limit uses this rate. */
export function leasedRate(limit: UnleasedLimit & { readonly rate: RateSpec }): RateSpec {
  const { rate, lease } = limit;
  if (lease === undefined || rate.kind === 'concurrency' || leaseRefusal(limit) !== undefined) return rate;
  const { forMicros, max, exact } = lease;
  const terms = { forMicros, max };
  if (rate.kind === 'window' || !exact) return { ...rate, lease: terms };
  return { ...rate, maxTokens: rate.maxTokens - reservedTokens(rate, terms), lease: terms };
}
