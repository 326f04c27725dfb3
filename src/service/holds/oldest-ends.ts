import type { HoldOrder } from '../../limiter/holds/hold.js';
import type { Rule } from '../../policy/rule.js';
import type { HoldRecord } from '../record/decision-record.js';

/** A planned item of a rule. */
interface PlannedCall {
  readonly rule: Rule | undefined;
  readonly holds?: HoldOrder | undefined;
  readonly refund: boolean;
}

/** The planned items of a descriptor. */
interface Takes<T> {
  takes: readonly T[];
  oldestEnds: readonly T[];
  ends: readonly HoldRecord[] | undefined;
}

/**
 * Moves the items that report the end of a request to a rule with `pair: oldest` to `oldestEnds`. Ignores all other
 * items in `others`.
 */
export function separateEnds<T extends PlannedCall, D extends Takes<T>>(
  decision: D,
  others: readonly T[],
): D {
  const { takes } = decision;
  if (!takes.some(isEnd) && !others.some(isEnd)) return decision;
  decision.oldestEnds = [...takes, ...others].filter(isEnd);
  decision.takes = takes.filter((take) => !isEnd(take));
  decision.ends = [];
  return decision;
}

/**
 * For such a rule, an item is the start of a request with a hold, a refund, or the end of a request with the use as its
 * hits.
 */
function isEnd({ rule, holds, refund }: PlannedCall): boolean {
  return rule?.hold?.pair === 'oldest' && holds === undefined && !refund;
}
