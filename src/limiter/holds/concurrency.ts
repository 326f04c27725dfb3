import {
  type BucketOperation,
  expectCount,
  type RateAlgorithm,
  type TakeOutcome,
} from '../rate-algorithm.js';
import type { RunningBucket, TakeSnapshot } from '../running-bucket.js';
import { hasTooManySlots } from './hold.js';

/**
 * A limit on concurrent requests: at most `max` slots are occupied at any time. The state of its bucket is the number
 * of occupied slots, which the store counts from the holds ({@link NewHold}).
 *
 * A request occupies its slots even if it exceeds the limit: if it is allowed nevertheless, for example in shadow mode,
 * it is in flight. The slots are given back only if the request is denied.
 */
export class ConcurrencyRate implements RateAlgorithm {
  readonly kind = 'concurrency' as const;
  readonly byWallClock = false;
  readonly hasFixedPeriod = true;
  readonly reportedUnit = undefined;
  readonly lease = undefined;
  /** Maximum number of slots, 1 to 2^32-1. */
  readonly max: number;
  /** No number of hits is a charge, because usage that has already happened needs no slot. */
  readonly minChargeHits = Number.POSITIVE_INFINITY;
  readonly maxDebt = 0;

  constructor(max: number) {
    expectCount(max, 1, 'the number of slots');
    this.max = max;
  }

  nowOf(tokenMicros: number): number {
    return tokenMicros;
  }

  take(bucket: RunningBucket, { hits, refund, undoAtMicros }: BucketOperation): boolean {
    if (refund) {
      // Only a settlement frees slots, because other refunds do not identify a hold.
      if (undoAtMicros === undefined) return false;
      bucket.count = Math.max(0, bucket.count - hits);
      bucket.dirty = true;
      return false;
    }
    if (hasTooManySlots(this, hits)) return true;
    // A peek asks for one more slot.
    const limited = bucket.count + Math.max(1, hits) > this.max;
    if (hits === 0) return limited;
    bucket.count += hits;
    bucket.dirty = true;
    return limited;
  }

  charge(): number {
    return 0;
  }

  deny(bucket: RunningBucket, _operation: BucketOperation, snapshot: TakeSnapshot): void {
    snapshot.record(snapshot.overLimit, bucket);
  }

  toStoredForm(): void {}

  undoMicrosOf(takenMicros: number): number {
    return takenMicros;
  }

  /** If no slot is free, the wait is infinite, because nobody knows when a slot will become free. */
  outcome(
    _hits: number,
    { overLimit, count }: TakeSnapshot,
    _nowMicros: number,
    cached = false,
  ): TakeOutcome {
    const remaining = Math.max(0, this.max - count);
    return {
      overLimit,
      remaining,
      waitMicros: overLimit || remaining === 0 ? Number.POSITIVE_INFINITY : 0,
      used: count,
      uncollectedHits: 0,
      cached,
    };
  }

  countsDenied(): boolean {
    return false;
  }

  get reportedLimit(): number {
    return this.max;
  }

  /** A limit on concurrent requests has no period. */
  periodSeconds(): number {
    return 0;
  }

  resetSecond(seconds: number): number {
    return seconds;
  }

  assumedUsed(): number {
    return this.max;
  }
}

/** Creates a limit on concurrent requests; `max` is an integer from 1 to 2^32-1. */
export function concurrencyRate(max: number): ConcurrencyRate {
  return new ConcurrencyRate(max);
}
