import type { DumpedLimit, DumpedPhase, DumpedPolicies, DumpedPolicyRule } from './dumped-policy.js';
import { countText } from './numbers.js';
import { briefText } from './shown-text.js';
import { shortUtcText } from './times.js';

/**
 * Returns a limit in words: `100 tokens, 10 more every 1s`, `5 per hour`, or `10 concurrent requests,
 * expires after 1m`.
 */
export function limitWords(limit: DumpedLimit): string {
  if (limit.unlimited === true) return 'unlimited';
  if (limit.concurrency !== undefined) {
    const { max, expires_after: expiry, retry_after: retry } = limit.concurrency;
    const waits = retry === undefined ? '' : `, retry after ${retry}`;
    return `${countText(max)} concurrent ${max === 1 ? 'request' : 'requests'}, expires after ${expiry}${waits}`;
  }
  return `${timedLimitWords(limit)}${holdWords(limit.hold)}`;
}

function timedLimitWords(limit: DumpedLimit): string {
  const { max_debt: most = 0 } = limit;
  const debt = most === 0 ? '' : `, debt up to ${countText(most)}`;
  if (limit.token_bucket !== undefined) {
    const { max_tokens: most, tokens_per_fill: fill, fill_interval: every } = limit.token_bucket;
    return `${countText(most)} ${most === 1 ? 'token' : 'tokens'}, ${countText(fill)} more every ${every}${debt}`;
  }
  const { unit = 'unit', requests_per_unit: requests = 0, unit_multiplier: times = 1, calendar } = limit;
  const span = times === 1 ? unit : `${countText(times)} ${unit}s`;
  const zone = calendar === undefined ? '' : ` in the time zone ${calendar}`;
  return `${countText(requests)} per ${span}${zone}${debt}`;
}

function holdWords(hold: DumpedLimit['hold']): string {
  if (hold === undefined) return '';
  const { amount, expires_after: expiry, unknown, pair } = hold;
  const freed = unknown === 'free' ? ', frees an unknown use' : '';
  const paired = pair === 'oldest' ? ', ends settle the oldest hold' : '';
  return `, holds ${estimateWords(amount)}, expires after ${expiry}${freed}${paired}`;
}

function estimateWords(amount: number | undefined): string {
  if (amount === undefined) return 'the hits of the first call';
  return `${countText(amount)} ${amount === 1 ? 'hit' : 'hits'}`;
}

/** Returns a phase in words. */
export function phaseWord(phase: string): string {
  return phase.replaceAll('_', ' ');
}

/** A future change of phase. */
export interface PhaseSwitch {
  readonly to: string;
  /** Seconds since the epoch. */
  readonly at: number;
}

/** Returns the future changes of a schedule, the earliest first. */
export function futureSwitches(phase: DumpedPhase, nowSeconds: number): readonly PhaseSwitch[] {
  return (['grace_period', 'active'] as const).flatMap((to) => {
    const at = Date.parse(phase[to] ?? '') / 1000;
    return at > nowSeconds ? [{ to, at }] : [];
  });
}

/**
 * Returns the time of the next phase change of any rule or domain, in seconds since the epoch, or Infinity without
 * such a change.
 */
export function nextSwitchAt({ domains }: DumpedPolicies, nowSeconds: number): number {
  let next = Number.POSITIVE_INFINITY;
  const check = (phase: DumpedPhase): void => {
    for (const { at } of futureSwitches(phase, nowSeconds)) next = Math.min(next, at);
  };
  for (const { policy } of domains) {
    if (policy === undefined) continue;
    check(policy.phase);
    for (const rule of policy.rules) check(rule.phase);
  }
  return next;
}

/** Returns the effect of a change of phase: `denies from`. */
export function switchVerb({ to }: PhaseSwitch): string {
  return to === 'active' ? 'denies from' : 'grace period from';
}

/** Returns a change of phase with its absolute time: `denies from 2026-12-01 00:00 UTC`. */
export function switchWords(one: PhaseSwitch): string {
  return `${switchVerb(one)} ${shortUtcText(one.at)}`;
}

/** The part of a rule that has special properties besides its limit and phase. */
export type MarkedRule = Pick<
  DumpedPolicyRule,
  | 'shadow_mode'
  | 'quota_mode'
  | 'enforce_percent'
  | 'replaces'
  | 'on_over'
  | 'then'
  | 'pays_after'
  | 'plan_values'
  | 'without_row'
>;

/** Returns the special properties of a rule besides its limit and phase, a few words for each. */
export function ruleMarks(rule: MarkedRule): readonly string[] {
  const marks: string[] = [];
  if (rule.plan_values !== null || rule.without_row !== null) marks.push('varies by plan');
  if (rule.on_over !== null) marks.push('soft limit: denies no requests');
  if (rule.then !== null) marks.push(`then ${briefText(rule.then)}`);
  if (rule.pays_after !== undefined)
    marks.push(`pays after ${rule.pays_after.map((name) => briefText(name)).join(', ')}`);
  if (rule.shadow_mode) marks.push('shadow mode: not enforced');
  if (rule.quota_mode) marks.push('quota: denies only if all other quotas also deny');
  if (rule.enforce_percent !== 100) marks.push(`${rule.enforce_percent}% of denials enforced`);
  if (rule.replaces.length > 0)
    marks.push(`replaces ${rule.replaces.map((name) => briefText(name)).join(', ')}`);
  return marks;
}

/** Texts for the `enforcement` of a bucket, as in `weir bucket show`. */
export const ENFORCED: ReadonlyMap<string, string> = new Map([
  ['enforce', 'yes'],
  ['observe', 'no'],
  ['quota', 'with other quotas'],
  ['spill', 'with its chain'],
]);
