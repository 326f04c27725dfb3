import { answerOf, type StoreFailurePolicy, shareOf } from '../../limiter/failure-policy.js';
import { canDeny, limitsBefore, type PhaseSchedule, type Rule } from '../../policy/rule.js';
import { type Effect, effectOf } from './change.js';
import { isSameLimit, narrowings } from './compare-limits.js';

/**
 * Returns the time from which a rule denies requests, in wall clock microseconds, at least `nowMicros`. Returns
 * Infinity if the rule never denies, whatever its limit.
 */
export function enforcedFrom(rule: Rule, nowMicros: number): number {
  return canDeny(rule) ? Math.max(rule.phase.activeAtMicros, nowMicros) : Infinity;
}

/**
 * Returns the time from which one of the rules keeps the other quotas of a request from denying, in wall clock
 * microseconds, at least `nowMicros`. Quotas deny only together, so a quota with tokens left allows the request, and a
 * quota in shadow mode always does. Returns Infinity for rules that never do: a quota is ignored in phases before
 * `active`.
 */
export function suppressesQuotasFrom(rules: readonly Rule[], nowMicros: number): number {
  const from = ({ quotaMode, rate, shadowMode, phase }: Rule): number => {
    if (!quotaMode || rate === undefined) return Infinity;
    return shadowMode ? nowMicros : Math.max(phase.activeAtMicros, nowMicros);
  };
  return Math.min(Infinity, ...rules.map(from));
}

/** Tells whether two schedules have the same phase at every time from `nowMicros` on. */
export function isSamePhase(one: PhaseSchedule, other: PhaseSchedule, nowMicros: number): boolean {
  const [a, b] = [normalizedSchedule(one, nowMicros), normalizedSchedule(other, nowMicros)];
  return a.activeAtMicros === b.activeAtMicros && a.gracePeriodAtMicros === b.gracePeriodAtMicros;
}

/**
 * Normalizes a schedule: times in the past become -Infinity, and a phase that never takes effect starts at Infinity.
 */
function normalizedSchedule(
  { gracePeriodAtMicros, activeAtMicros }: PhaseSchedule,
  nowMicros: number,
): PhaseSchedule {
  const turn = (at: number): number => (at <= nowMicros ? -Infinity : at);
  const active = turn(activeAtMicros);
  const grace = turn(gracePeriodAtMicros);
  return { activeAtMicros: active, gracePeriodAtMicros: grace >= active ? Infinity : grace };
}

/** Tells whether a rule ever denies a request. */
export function isEnforced(rule: Rule, nowMicros: number): boolean {
  return enforcedFrom(rule, nowMicros) !== Infinity;
}

/**
 * Tells whether the rules `after` could deny a request that the rules `before` allow. `shared`: more requests than
 * before take from one bucket.
 */
export function couldDeny(
  before: readonly Rule[],
  after: readonly Rule[],
  shared: boolean,
  nowMicros: number,
): boolean {
  return after.some((rule, index) => {
    const from = enforcedFrom(rule, nowMicros);
    if (from === Infinity) return false;
    const paid = limitsBefore(after, index);
    const covers = (other: Rule, at: number): boolean =>
      isCovered(rule, from, other, nowMicros) && allowsNoMore(limitsBefore(before, at), paid);
    return shared || !before.some(covers);
  });
}

/** Tells whether the limits before one in a chain (`then`) allow no more than those before another one. */
function allowsNoMore(before: readonly Rule[], after: readonly Rule[]): boolean {
  if (before.length === 0) return true;
  return before.length === after.length && before.every((rule, at) => isSameLimit(rule, after[at] as Rule));
}

/** Tells whether `other` already denied everything that `rule` denies. */
function isCovered(rule: Rule, from: number, other: Rule, nowMicros: number): boolean {
  return (
    enforcedFrom(other, nowMicros) <= from &&
    other.enforcePercent >= rule.enforcePercent &&
    (rule.quotaMode || !other.quotaMode) &&
    narrowings(other, rule).length === 0
  );
}

/** Returns the effect of a changed `local` share; undefined unless both policies are `local`. */
export function shareEffect(before: StoreFailurePolicy, after: StoreFailurePolicy): Effect | undefined {
  if (answerOf(before) !== 'local' || answerOf(after) !== 'local') return undefined;
  return effectOf(shareOf(after) < shareOf(before), true);
}
