import { answerOf, type StoreFailurePolicy, shareOf } from '../../limiter/failure-policy.js';
import type { PhaseSchedule, Rule } from '../../policy/rule.js';
import { type Effect, effectOf } from './change.js';
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

/**
 * From when on rules hold back the quotas of a request: quotas deny only together, so one with room lets the others
 * pass, and one in shadow mode always does. Wall clock microseconds, not before now; Infinity: never, as in phases
 * before `active`, where a quota is left out.
 */
export function holdsQuotasBackFrom(rules: readonly Rule[], nowMicros: number): number {
  const from = ({ quotaMode, candidate, rate, shadowMode, phase }: Rule): number => {
    if (!quotaMode || candidate || rate === undefined) return Infinity;
    return shadowMode ? nowMicros : Math.max(phase.activeAtMicros, nowMicros);
  };
  return Math.min(Infinity, ...rules.map(from));
}

/** Whether two schedules have the same phase at any time from now on. */
export function isSamePhase(one: PhaseSchedule, other: PhaseSchedule, nowMicros: number): boolean {
  const [a, b] = [phaseTurns(one, nowMicros), phaseTurns(other, nowMicros)];
  return a.activeAtMicros === b.activeAtMicros && a.gracePeriodAtMicros === b.gracePeriodAtMicros;
}

/** What is over has always been, and a phase that another hides never comes. */
function phaseTurns(
  { gracePeriodAtMicros, activeAtMicros }: PhaseSchedule,
  nowMicros: number,
): PhaseSchedule {
  const turn = (at: number): number => (at <= nowMicros ? -Infinity : at);
  const active = turn(activeAtMicros);
  const grace = turn(gracePeriodAtMicros);
  return { activeAtMicros: active, gracePeriodAtMicros: grace >= active ? Infinity : grace };
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

/** The effect of another share of `local`; undefined where one of the policies is none. */
export function shareEffect(before: StoreFailurePolicy, after: StoreFailurePolicy): Effect | undefined {
  if (answerOf(before) !== 'local' || answerOf(after) !== 'local') return undefined;
  return effectOf(shareOf(after) < shareOf(before), true);
}
