import type { TakeItem } from '../../limiter/bucket-store.js';
import { correctionOf } from '../../limiter/holds/settlement.js';
import type { HeldRule } from './held-rules.js';
import type { TokenHold } from './hold-token.js';

/** The end of one hold: the item for the store, and the values to report. */
export interface HoldEnd {
  readonly item: TakeItem;
  /** Undefined if the end settles the oldest hold of its bucket. Such an end must not be sent twice. */
  readonly hold: TokenHold | undefined;
  readonly held: HeldRule;
  /** Hits that were used; undefined if that is unknown. For a limit on concurrent requests, its slots. */
  readonly used: number | undefined;
}

/**
 * Returns the end of a hold. `used` is undefined if the use is unknown: then the hold decides whether its hits stay
 * taken. A limit on concurrent requests gets its slots back in any case.
 */
export function holdEnd(held: HeldRule, hold: TokenHold, used: number | undefined): HoldEnd {
  const { rate } = held;
  const { key, tagLength, amount, freesUnknown } = hold;
  const isSlot = rate.kind === 'concurrency';
  const kept = freesUnknown ? 0 : amount;
  const final = isSlot ? 0 : (used ?? kept);
  const { hits, refund } = correctionOf(final, amount);
  const item: TakeItem = { key, tagLength, rate, hits, refund, enforcement: 'observe', settles: hold };
  return { item, hold, held, used: isSlot ? amount : used };
}

/** Returns the end of a request that settles the oldest hold of the bucket of a take, whose hits are the use. */
export function oldestEnd(held: HeldRule, { key, tagLength, hits: used }: TakeItem): HoldEnd {
  const common = { key, tagLength, rate: held.rate, refund: false };
  const item: TakeItem = { ...common, hits: used, enforcement: 'observe', settles: 'oldest' };
  return { item, hold: undefined, held, used };
}
