import type { StorageError, TakeItem } from '../bucket-store.js';
import type { HoldId, Settlement } from './hold.js';

/** The bucket whose holds are listed. */
export type HeldBucket = Pick<TakeItem, 'key' | 'tagLength' | 'rate'>;

/** A hold that exists. */
export interface StoredHold {
  readonly id: HoldId;
  /** Hits of a reservation, or slots. */
  readonly amount: number;
  /** Undefined for a limit on concurrent requests in Redis, which does not store the lifetime. */
  readonly lifetimeMillis: number | undefined;
  /** See `Settlement`. */
  readonly fullMicros: number;
  /** 0 if it is unknown; see `Settlement`. */
  readonly costMicros: number;
  /** See `HoldOrder`. */
  readonly freesUnknown: boolean;
  /** Time until the hold expires. */
  readonly remainingMicros: number;
}

/** Holds of a bucket. */
export interface ListedHolds {
  /** The holds that expire first, in this order. */
  readonly holds: readonly StoredHold[];
  /** Number of reservations or slots of holds that are not listed. */
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

/** Returns the number of reservations or slots of holds, which stores keep one by one. */
export function storedCount(holds: readonly StoredHold[], { kind }: HeldBucket['rate']): number {
  return kind === 'concurrency' ? holds.reduce((sum, { amount }) => sum + amount, 0) : holds.length;
}

/** Maximum number of holds that a store lists at once, which takes about 2 ms in Redis. */
export const MAX_LISTED_HOLDS = 250;

/** Finds holds for operators, without delaying decisions. */
export interface HoldBook {
  /**
   * Lists up to `most` holds of a bucket, from 1 to {@link MAX_LISTED_HOLDS}, whether or not they free their hits.
   * Never rejects.
   */
  listHolds(bucket: HeldBucket, most: number): Promise<ListedHolds | StorageError>;
  /** Returns whether the bucket has a hold with these values, except `freesUnknown`. Never rejects. */
  hasHold(bucket: HeldBucket, hold: Settlement): Promise<boolean | StorageError>;
}
