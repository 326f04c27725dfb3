import type { StorageError, Take } from '../bucket-store.js';
import type { HoldId, HoldValues } from './hold.js';

/** The bucket whose holds are listed. */
export type HeldBucket = Pick<Take, 'key' | 'hashTagLength' | 'rate'>;

/** A hold that exists. */
export interface StoredHold {
  readonly id: HoldId;
  /** Hits of a reservation, or slots. */
  readonly amount: number;
  /** Undefined for concurrency limits in Redis, which does not store the lifetime of their holds. */
  readonly lifetimeMillis: number | undefined;
  /** See `Settlement`. */
  readonly fullAtMicros: number;
  /** 0 if the cost is unknown; see `Settlement`. */
  readonly refillMicros: number;
  /** See `NewHold`. */
  readonly freesUnknown: boolean;
  /** Time until the hold expires. */
  readonly remainingMicros: number;
}

/** Holds of a bucket. */
export interface ListedHolds {
  /** The holds that expire first, in this order. */
  readonly holds: readonly StoredHold[];
  /** Number of reservations, or of slots, whose holds are not listed. */
  readonly more: number;
}

/** Merges the lists of the sets of a bucket, and returns its first `most` holds. */
export function mergedHolds(
  sets: readonly ListedHolds[],
  { rate }: Pick<HeldBucket, 'rate'>,
  most: number,
): ListedHolds {
  const all = sets
    .flatMap(({ holds }) => holds)
    .sort((one, other) => one.remainingMicros - other.remainingMicros);
  const notListed = storedCount(all.slice(most), rate);
  return { holds: all.slice(0, most), more: sets.reduce((sum, { more }) => sum + more, notListed) };
}

/** Returns the number of reservations, or of slots, of these holds. Stores keep each of them separately. */
export function storedCount(holds: readonly StoredHold[], { kind }: HeldBucket['rate']): number {
  return kind === 'concurrency' ? holds.reduce((sum, { amount }) => sum + amount, 0) : holds.length;
}

/** Maximum number of holds in one list. Redis needs about 2 ms for a list of this length. */
export const MAX_LISTED_HOLDS = 250;

/** Finds holds for operators, without delaying decisions. */
export interface HoldInspector {
  /**
   * Lists up to `most` holds of a bucket, whether or not they return their hits when they expire. `most` is from 1 to
   * {@link MAX_LISTED_HOLDS}. Never rejects.
   */
  listHolds(bucket: HeldBucket, most: number): Promise<ListedHolds | StorageError>;
  /** Returns whether the bucket has a hold with these values, except `freesUnknown`. Never rejects. */
  hasHold(bucket: HeldBucket, hold: HoldValues): Promise<boolean | StorageError>;
}
