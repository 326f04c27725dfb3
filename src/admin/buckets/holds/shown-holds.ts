import { StorageError } from '../../../limiter/bucket-store.js';
import type { Settlement } from '../../../limiter/holds/hold.js';
import type { StoredHold } from '../../../limiter/holds/hold-book.js';
import type { Rule } from '../../../policy/rule.js';
import type { PlannedTake } from '../../../service/plan.js';
import type { FoundLimit } from '../found-limits.js';
import type { ShownHold, ShownHolds } from '../messages.js';
import type { QuestionContext } from '../question-context.js';
import { encodeHoldId } from './hold-id.js';

/** Maximum number of holds of a bucket that an answer lists. Further ones are counted. */
const MAX_HOLDS_SHOWN = 100;
/** Maximum number of buckets whose holds an answer lists. */
const MAX_BUCKETS_WITH_HOLDS = 10;

/** A known bucket of a rule with holds. */
export interface HeldLimit {
  readonly limit: FoundLimit;
  readonly take: PlannedTake;
  readonly rule: Rule;
  readonly lifetimeMillis: number;
}

/** Returns the limits with holds whose buckets are known, each bucket once. */
export function heldLimits(limits: readonly FoundLimit[]): readonly HeldLimit[] {
  const byKey = new Map<string, HeldLimit>();
  for (const limit of limits) {
    const { take } = limit;
    const rule = take?.rule;
    if (take === undefined || rule?.hold === undefined || byKey.has(take.key)) continue;
    byKey.set(take.key, { limit, take, rule, lifetimeMillis: rule.hold.expiresAfterMillis });
  }
  return [...byKey.values()];
}

/**
 * Returns the values that settle a hold. Redis does not store the lifetime of a hold in a concurrency limit, and does
 * not compare it. The lifetime in the rule then applies.
 */
export function settlementOfStored(
  { id, amount, fullMicros, costMicros, lifetimeMillis, freesUnknown }: StoredHold,
  { lifetimeMillis: ofRule }: Pick<HeldLimit, 'lifetimeMillis'>,
): Settlement {
  return { id, amount, fullMicros, costMicros, lifetimeMillis: lifetimeMillis ?? ofRule, freesUnknown };
}

function shownHold(hold: StoredHold, held: HeldLimit): ShownHold {
  const values = settlementOfStored(hold, held);
  return {
    id: encodeHoldId(values),
    amount: hold.amount,
    age: Math.max(0, values.lifetimeMillis / 1000 - hold.remainingMicros / 1_000_000),
    ends_in: hold.remainingMicros / 1_000_000,
  };
}

/** Lists the holds of the known buckets, by limit. A bucket has no list if its holds could not be read. */
export async function shownHolds(
  limits: readonly FoundLimit[],
  { store }: Pick<QuestionContext, 'store'>,
): Promise<ReadonlyMap<FoundLimit, ShownHolds>> {
  const shown = new Map<FoundLimit, ShownHolds>();
  // One after the other, because Redis limits the number of scripts that wait.
  for (const held of heldLimits(limits).slice(0, MAX_BUCKETS_WITH_HOLDS)) {
    const listed = await store.holds.listHolds(held.take, MAX_HOLDS_SHOWN);
    if (listed instanceof StorageError) continue;
    shown.set(held.limit, {
      list: listed.holds.map((hold) => shownHold(hold, held)),
      more: listed.more,
    });
  }
  return shown;
}
