import type { Rule } from '../../policy/rule.js';
import { narrower } from './compare-rates.js';

/**
 * From when on a rule denies, wall clock microseconds, not before now; Infinity for one that never does, whatever its
 * limit.
 */
export function enforcedFrom(rule: Rule, nowMicros: number): number {
  if (rule.candidate || rule.rate === undefined || rule.shadowMode || rule.enforcePercent === 0)
    return Infinity;
  return Math.max(rule.phase.activeAtMicros, nowMicros);
}

/** Whether a rule ever denies a request. */
export function isEnforced(rule: Rule, nowMicros: number): boolean {
  return enforcedFrom(rule, nowMicros) !== Infinity;
}

/**
 * Whether the rules `after` could deny a request that the rules `before`, which it met until now, let pass. `shared`:
 * more requests take from one bucket than before.
 */
export function couldDeny(
  before: readonly Rule[],
  after: readonly Rule[],
  shared: boolean,
  nowMicros: number,
): boolean {
  return after.some((rule) => {
    const from = enforcedFrom(rule, nowMicros);
    if (from === Infinity) return false;
    return shared || !before.some((other) => isCovered(rule, from, other, nowMicros));
  });
}

/** Whether everything that `rule` denies, `other` denied before. */
function isCovered(rule: Rule, from: number, other: Rule, nowMicros: number): boolean {
  return (
    enforcedFrom(other, nowMicros) <= from &&
    other.enforcePercent >= rule.enforcePercent &&
    (rule.quotaMode || !other.quotaMode) &&
    narrower(other.rate, rule.rate).length === 0
  );
}
