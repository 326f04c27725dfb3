import {
  type BucketOperation,
  expectCount,
  type RateAlgorithm,
  type TakeOutcome,
} from '../rate-algorithm.js';
import type { RunningBucket, TakeSnapshot } from '../running-bucket.js';
import { hasTooManySlots } from './hold.js';

/**
 * A limit on concurrent requests: at most `max` slots are held at any time. The state of its bucket is the number of
 * slots that are held now; the store counts them from the holds ({@link HoldOrder}).
 *
 * A take occupies its slots even if it is limited, because a limited request that is allowed nevertheless, such as one
 * in shadow mode, is in flight. Only the denial of the request gives the slots back.
 */
export class ConcurrencyRate implements RateAlgorithm {
  readonly kind = 'concurrency' as const;
  readonly byWallClock = false;
  readonly hasFixedPeriod = true;
  readonly reportedUnit = undefined;
  /** Maximum number of slots, 1 to 2^32-1. */
  readonly max: number;
  /** No number of hits is a charge: usage that is over needs no slot. */
  readonly minChargeHits = Number.POSITIVE_INFINITY;
  readonly maxDebt = 0;

  constructor(max: number) {
    expectCount(max, 1, 'the number of slots');
    this.max = max;
  }

  nowOf(tokenMicros: number): number {
    return tokenMicros;
  }

  take(bucket: RunningBucket, { hits, refund, undoMark }: BucketOperation): boolean {
    if (refund) {
      // Only a settlement gives slots back, because a refund names no hold.
      if (undoMark === undefined) return false;
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
    snapshot.record(snapshot.limited, bucket);
  }

  toStoredForm(): void {}

  undoMarkAt(takenMicros: number): number {
    return takenMicros;
  }

  /** Without a free slot, the wait is infinite, because the time at which a slot becomes free is unknown. */
  outcome(_hits: number, { limited, count }: TakeSnapshot, _nowMicros: number, cached = false): TakeOutcome {
    const remaining = Math.max(0, this.max - count);
    return {
      limited,
      remaining,
      waitMicros: limited || remaining === 0 ? Number.POSITIVE_INFINITY : 0,
      used: count,
      forgiven: 0,
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
