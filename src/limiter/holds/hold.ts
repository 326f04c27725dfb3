/** The id of a hold: 24 hexadecimal digits. Several holds of one request have different ids. */
export type HoldId = string;

/** Hexadecimal digits of a {@link HoldId}. */
export const HOLD_ID_DIGITS = 24;

/**
 * First digits of all hold ids of this edition of weir. The other digits are a digest of all values of the hold, so a
 * store compares these values by comparing the ids. Ids of the first edition are random.
 */
export const BOUND_ID_START = '00000';

/** Returns whether the id of a hold depends on its values. */
export function hasBoundId({ id }: { readonly id: HoldId }): boolean {
  return id.startsWith(BOUND_ID_START);
}

/**
 * Maximum number of slots that one item can occupy in a concurrency limit. An item with more slots exceeds the limit
 * and places no hold. This bounds the work for one item.
 */
export const MAX_SLOTS_PER_ITEM = 1000;

/**
 * Turns the hits of an item into a hold: the store keeps a record of the hits under an id until the hold is settled or
 * expires. In a concurrency limit, the hold occupies its slots until then. In a token bucket or a window, the hold is a
 * reservation: the hits are an estimate, which the settlement corrects.
 */
export interface NewHold {
  readonly id: HoldId;
  /** Time after which the hold expires, in milliseconds, from 1 to 2^32-1. */
  readonly lifetimeMillis: number;
  /**
   * Whether the store returns the hits of a reservation when it expires, as if it were settled with a use of 0 at that
   * time. Stores keep such holds in a separate set, so that a reload does not change this for existing holds.
   */
  readonly freesUnknown?: boolean;
}

/**
 * Makes a store apply an item only if a hold exists, and remove that hold. The item is a refund of the unused part of
 * the hold, or a charge for the use above it. All fields must match the values of the hold, so that a token that a
 * client has changed settles nothing.
 */
export interface HoldValues extends NewHold {
  /** Hits of the hold. */
  readonly amount: number;
  /** `TakeOutcome.fullAtMicros` of the hold; 0 for windows and limits on concurrent requests. */
  readonly fullAtMicros: number;
  /**
   * `TakeOutcome.refillMicros` of the hold; 0 or absent for other kinds of rates, and for holds of earlier versions.
   */
  readonly refillMicros?: number | undefined;
}

/**
 * Identifies the hold that an item settles. `oldest` is the hold in the bucket that expires first. The `hits` of such
 * an item are the use, and the store computes the refund or the charge from the hits of the hold. The item must be the
 * only one of its request, and must not be repeated, because a repeated item would settle another hold.
 */
export type SettledHold = HoldValues | 'oldest';

/** The values of a hold that a settlement needs. */
export type HeldHits = Pick<HoldValues, 'amount' | 'fullAtMicros' | 'refillMicros'>;

/**
 * Effect of an item on its hold:
 * - `placed`: the item placed the hold.
 * - `settled`: the item settled the hold.
 * - `unknown`: no hold has these values, because it was settled before, has expired, or never existed. The item has no
 *   effect.
 * - `abandoned`: the request is divided between servers and is not allowed, but one server has placed the hold, or did
 *   not answer and may have placed it. The caller must settle the hold, and must repeat this until the server answers.
 */
export type HoldEffect = 'placed' | 'settled' | 'unknown' | 'abandoned';

/** The properties of a take that decide whether it places a hold. */
interface HoldingTake {
  readonly rate: { readonly kind: string };
  readonly hits: number;
  readonly holds?: NewHold | undefined;
}

/** The properties of an item that decide whether its holds free their hits. */
interface FreeingItem {
  readonly rate: { readonly kind: string };
  readonly holds?: NewHold | undefined;
  readonly settles?: SettledHold | undefined;
}

/** Returns the hold that an item places if its request is allowed. Peeks and items with too many slots place none. */
export function placeableHold({ rate, hits, holds }: HoldingTake): NewHold | undefined {
  if (holds === undefined || hits === 0) return undefined;
  return hasTooManySlots(rate, hits) ? undefined : holds;
}

/** Returns the number of slots or reservations that a store adds or removes for an item; 0 if the item has no hold. */
export function heldCount(item: HoldingTake & { readonly settles?: SettledHold | undefined }): number {
  const { rate, hits, settles } = item;
  if (settles === undefined && placeableHold(item) === undefined) return 0;
  if (settles === 'oldest' || rate.kind !== 'concurrency') return 1;
  return settles?.amount ?? hits;
}

/** Returns whether the store returns the hits of an item's holds when the holds expire. */
export function freesExpired({ rate, holds, settles }: FreeingItem): boolean {
  const hold = settles ?? holds;
  if (hold === undefined || hold === 'oldest' || rate.kind === 'concurrency') return false;
  return hold.freesUnknown === true;
}

/** Whether an item asks for more than {@link MAX_SLOTS_PER_ITEM} slots of a concurrency limit. */
export function hasTooManySlots({ kind }: HoldingTake['rate'], hits: number): boolean {
  return kind === 'concurrency' && hits > MAX_SLOTS_PER_ITEM;
}
