import type { DumpedOnOver, DumpedPolicyRule } from './dumped-policy.js';
import { briefText } from './shown-text.js';

const COUNTED = 'allowed, and counted as “would be denied”.';

/** Returns the effect of the phase of a domain with these rules, as a sentence. */
export function domainMeaning(phase: string, rules: readonly Pick<DumpedPolicyRule, 'on_over'>[]): string {
  const isPlain = phase !== 'active' || rules.every(({ on_over }) => on_over === null);
  return isPlain ? phaseMeaning(phase) : 'Requests over a limit are denied, unless the limit is soft.';
}

function phaseMeaning(phase: string): string {
  return phase === 'active'
    ? 'Requests over the limit are denied.'
    : `Requests over the limit are ${COUNTED}`;
}

/** The part of a rule that decides about requests over its limit. */
export type OverRule = Pick<
  DumpedPolicyRule,
  'limit' | 'phase' | 'shadow_mode' | 'quota_mode' | 'enforce_percent' | 'on_over' | 'then'
>;

/** Returns the effect of a rule on requests over its limit, as a sentence. */
export function overWords(rule: OverRule): string {
  const { limit, phase, on_over: onOver, then: next, enforce_percent: percent } = rule;
  if (limit.unlimited === true) return 'weir counts no requests, and denies none.';
  if (next !== null) return `Requests over the limit take from ${briefText(next)} instead.`;
  const observes = rule.shadow_mode || phase.now !== 'active' || percent === 0;
  if (onOver !== null) {
    if (observes) return 'Requests over this soft limit pass without marks.';
    const share = percent === 100 ? '' : ` for ${percent}% of them`;
    return `Requests over this soft limit pass${markWords(onOver, share)}.`;
  }
  if (observes) return `Requests over the limit are ${COUNTED}`;
  if (rule.quota_mode) return 'Requests over the limit are denied if all other quotas also deny.';
  if (percent === 100) return phaseMeaning(phase.now);
  return `weir denies ${percent}% of the requests over the limit. Other requests are ${COUNTED}`;
}

function markWords({ request_headers: headers = [], metadata }: DumpedOnOver, share: string): string {
  const marks = headers
    .flatMap((header) => Object.entries(header))
    .map(([name, value]) => `the header ${briefText(`${name}: ${value}`)}`);
  if (metadata !== undefined) marks.push(`the metadata ${briefText(JSON.stringify(metadata))}`);
  if (marks.length === 0) return '';
  const last = marks.pop() as string;
  return `, with ${[marks.join(', '), last].filter((part) => part !== '').join(' and ')}${share}`;
}
