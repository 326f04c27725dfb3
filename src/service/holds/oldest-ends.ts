import type { HoldOrder } from '../../limiter/holds/hold.js';
import type { Rule } from '../../policy/rule.js';
import type { HoldRecord } from '../record/decision-record.js';

/** A take of a rule, as it is planned. */
interface PlannedCall {
  readonly rule: Rule | undefined;
  readonly holds?: HoldOrder | undefined;
  readonly refund: boolean;
}

/** The takes of a descriptor. */
interface Takes<T> {
  takes: readonly T[];
  oldestEnds: readonly T[];
  ends: readonly HoldRecord[] | undefined;
}

/**
 * Moves the takes that end requests of rules with `pair: oldest` to `oldestEnds`. Only the ends count among `others`.
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

/** A take of such a rule is a start with a hold, a refund, or an end with its use as the hits. */
function isEnd({ rule, holds, refund }: PlannedCall): boolean {
  return rule?.hold?.pair === 'oldest' && holds === undefined && !refund;
}
