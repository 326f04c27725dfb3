import type { DumpedLimit, DumpedPhase, DumpedPolicies, DumpedPolicyRule } from './dumped-policy.js';
import { countText } from './numbers.js';
import { shortUtcText } from './times.js';

/** A limit in words: `100 tokens, 10 more every 1s`; `5 per hour`. */
export function limitWords(limit: DumpedLimit): string {
  if (limit.unlimited === true) return 'unlimited';
  const debt = limit.max_debt === undefined ? '' : `, debt up to ${countText(limit.max_debt)}`;
  if (limit.token_bucket !== undefined) {
    const { max_tokens: most, tokens_per_fill: fill, fill_interval: every } = limit.token_bucket;
    return `${countText(most)} ${most === 1 ? 'token' : 'tokens'}, ${countText(fill)} more every ${every}${debt}`;
  }
  const { unit = 'unit', requests_per_unit: requests = 0, unit_multiplier: times = 1, calendar } = limit;
  const span = times === 1 ? unit : `${countText(times)} ${unit}s`;
  const zone = calendar === undefined ? '' : ` of the calendar in ${calendar}`;
  return `${countText(requests)} per ${span}${zone}${debt}`;
}

/** A phase as a word for people. */
export function phaseWord(phase: string): string {
  return phase.replaceAll('_', ' ');
}

/** What a phase does, as a sentence. */
export function phaseMeaning(phase: string): string {
  return phase === 'active' ? 'Limits deny.' : 'Nobody is denied; what would be denied is counted.';
}

/** A change of phase that is to come. */
export interface PhaseSwitch {
  readonly to: string;
  /** Seconds since the epoch. */
  readonly at: number;
}

/** What a schedule has still to come, the first one first. */
export function switchesToCome(phase: DumpedPhase, nowSeconds: number): readonly PhaseSwitch[] {
  return (['grace_period', 'active'] as const).flatMap((to) => {
    const at = Date.parse(phase[to] ?? '') / 1000;
    return at > nowSeconds ? [{ to, at }] : [];
  });
}

/** When the next phase of any rule or domain begins, seconds since the epoch; Infinity where none is to come. */
export function nextSwitchAt({ domains }: DumpedPolicies, nowSeconds: number): number {
  let next = Number.POSITIVE_INFINITY;
  const look = (phase: DumpedPhase): void => {
    for (const { at } of switchesToCome(phase, nowSeconds)) next = Math.min(next, at);
  };
  for (const { policy } of domains) {
    if (policy === undefined) continue;
    look(policy.phase);
    for (const rule of policy.rules) look(rule.phase);
  }
  return next;
}

/** What a change of phase does: `denies from`. */
export function switchVerb({ to }: PhaseSwitch): string {
  return to === 'active' ? 'denies from' : 'grace period from';
}

/** A change of phase in words that stay true: `denies from 2026-12-01 00:00 UTC`. */
export function switchWords(one: PhaseSwitch): string {
  return `${switchVerb(one)} ${shortUtcText(one.at)}`;
}

/** What is special about a rule beside its limit and phase, a few words each. */
export function ruleMarks(
  rule: Pick<DumpedPolicyRule, 'shadow_mode' | 'quota_mode' | 'enforce_percent' | 'candidate' | 'replaces'>,
): readonly string[] {
  const marks: string[] = [];
  if (rule.candidate) marks.push('candidate: not enforced');
  if (rule.shadow_mode) marks.push('shadow mode: not enforced');
  if (rule.quota_mode) marks.push('quota: enforced with other quotas');
  if (rule.enforce_percent !== 100) marks.push(`${rule.enforce_percent}% of denials enforced`);
  if (rule.replaces.length > 0) marks.push(`replaces ${rule.replaces.join(', ')}`);
  return marks;
}

/** What is said of the `enforcement` of a bucket, in the words of `weir bucket show`. */
export const ENFORCED: ReadonlyMap<string, string> = new Map([
  ['enforce', 'yes'],
  ['observe', 'no'],
  ['quota', 'with other quotas'],
  ['candidate', 'no: candidate'],
]);
