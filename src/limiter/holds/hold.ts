/** The id of a hold: 24 hexadecimal digits. Several holds of one request have different ids. */
export type HoldId = string;

/** Hexadecimal digits of a {@link HoldId}. */
export const HOLD_ID_DIGITS = 24;

/**
 * First digits of the ids of this edition of weir. Their other digits are those of a digest of all values of the hold,
 * which a store therefore compares by comparing ids. Ids of the first edition are random.
 */
export const BOUND_ID_START = '00000';

/** Returns whether the id of a hold depends on its values. */
export function hasBoundId({ id }: { readonly id: HoldId }): boolean {
  return id.startsWith(BOUND_ID_START);
}

/**
 * Maximum number of slots that one item takes from a limit on concurrent requests. A take of more slots is limited and
 * places no hold, which bounds the work for one item.
 */
export const MAX_SLOTS_PER_ITEM = 1000;

/**
 * Makes a take a hold: the store keeps what was taken, under an id, until it is settled or its lifetime ends. A hold of
 * a limit on concurrent requests occupies its slots until then. A hold of a token bucket or a window is a reservation:
 * the hits are an estimate, and the settlement corrects them.
 */
export interface HoldOrder {
  readonly id: HoldId;
  /** Time after which the hold expires, in milliseconds, from 1 to 2^32-1. */
  readonly lifetimeMillis: number;
  /**
   * Whether a reservation that expires gives its hits back, as if it was settled with a use of 0 at that time. Stores
   * keep such holds in a separate set, so that a reload does not change this for existing holds.
   */
  readonly freesUnknown?: boolean;
}

/**
 * Applies an item only if a hold exists, and ends that hold. The item is a refund of the part of the hold that was not
 * used, or a charge of the use above it. All fields must have the values of the hold, so that a changed token settles
 * nothing.
 */
export interface Settlement extends HoldOrder {
  /** Hits of the hold. */
  readonly amount: number;
  /** `TakeOutcome.fullMicros` of the hold; 0 for windows and limits on concurrent requests. */
  readonly fullMicros: number;
  /** `TakeOutcome.costMicros` of the hold; 0 or absent for other rates, and for holds of earlier versions. */
  readonly costMicros?: number | undefined;
}

/**
 * Names the hold that an item settles. `oldest`: the hold of the bucket that expires first. The `hits` of such an item
 * are the use, and the store computes the refund or the charge from the hits of the hold. It is the only item of its
 * request, and must not be repeated, because it would settle another hold.
 */
export type SettledHold = Settlement | 'oldest';

/** The values of a hold that a settlement needs. */
export type HeldHits = Pick<Settlement, 'amount' | 'fullMicros' | 'costMicros'>;

/**
 * Effect of an item on its hold:
 * - `placed`: the take placed it.
 * - `settled`: the item ended it.
 * - `unknown`: no hold has these values: it was settled before, has expired, or never existed. The item changed
 *   nothing.
 * - `abandoned`: a request that is divided between servers is not allowed, but a server has placed the hold, or may
 *   have placed it without an answer. The caller ends the hold, and repeats that until the server answers.
 */
export type HoldEffect = 'placed' | 'settled' | 'unknown' | 'abandoned';

/** The properties of a take that decide whether it places a hold. */
interface HoldingTake {
  readonly rate: { readonly kind: string };
  readonly hits: number;
  readonly holds?: HoldOrder | undefined;
}

/** The properties of an item that decide whether its holds free their hits. */
interface FreeingItem {
  readonly rate: { readonly kind: string };
  readonly holds?: HoldOrder | undefined;
  readonly settles?: SettledHold | undefined;
}

/**
 * Returns the hold that a take places if its request is allowed. A peek places none, nor does a take of too many slots.
 */
export function placeableHold({ rate, hits, holds }: HoldingTake): HoldOrder | undefined {
  if (holds === undefined || hits === 0) return undefined;
  return hasTooManySlots(rate, hits) ? undefined : holds;
}

/**
 * Returns the number of slots or reservations that a store keeps or removes for an item, 0 for an item without a hold.
 */
export function heldCount(item: HoldingTake & { readonly settles?: SettledHold | undefined }): number {
  const { rate, hits, settles } = item;
  if (settles === undefined && placeableHold(item) === undefined) return 0;
  if (settles === 'oldest' || rate.kind !== 'concurrency') return 1;
  return settles?.amount ?? hits;
}

/** Returns whether the holds of an item give their hits back when they expire. */
export function freesExpired({ rate, holds, settles }: FreeingItem): boolean {
  const hold = settles ?? holds;
  if (hold === undefined || hold === 'oldest' || rate.kind === 'concurrency') return false;
  return hold.freesUnknown === true;
}

/** Returns whether a take has more slots of a limit on concurrent requests than {@link MAX_SLOTS_PER_ITEM}. */
export function hasTooManySlots({ kind }: HoldingTake['rate'], hits: number): boolean {
  return kind === 'concurrency' && hits > MAX_SLOTS_PER_ITEM;
}
