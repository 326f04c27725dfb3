import type { TakeItem, TakeOutcome } from '../limiter/bucket-store.js';

/** Gives back only if the request passes: where that is known in a later step, in that one. */
export function isRefund({ refund, enforcement }: TakeItem): boolean {
  return refund && enforcement !== 'candidate';
}

/**
 * Whether what is known of a request denies it whatever the rest would say: an enforced item does not fit. Otherwise a
 * caller who names a bucket that cannot be asked would get round the limits that can.
 */
export function deniesAnyway(items: readonly TakeItem[], outcomes: readonly TakeOutcome[]): boolean {
  return items.some(({ enforcement }, i) => enforcement === 'enforce' && outcomes[i]?.limited === true);
}

/** What is told of an item that could not be decided, in a request that is denied anyway. */
export const UNDECIDED: TakeOutcome = {
  limited: false,
  remaining: 0,
  waitMicros: 0,
  used: 0,
  forgiven: 0,
  cached: false,
};

/** A quota that cannot deny is watched; its outcome is the same. */
export function observed(item: TakeItem): TakeItem {
  return item.enforcement === 'quota' ? { ...item, enforcement: 'observe' } : item;
}

/** `outcomes` with those of a later step in the place of what was found for the items that it asked. */
export function replaced(
  items: readonly TakeItem[],
  outcomes: readonly TakeOutcome[],
  isAsked: (item: TakeItem) => boolean,
  later: readonly TakeOutcome[],
): TakeOutcome[] {
  let at = 0;
  return items.map((item, i) => (isAsked(item) ? later[at++] : outcomes[i]) as TakeOutcome);
}
