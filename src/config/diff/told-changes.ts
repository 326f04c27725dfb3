import type { PolicySet } from '../../policy/policy-set.js';
import { printable } from '../../printable.js';
import { summaryOf } from './change.js';
import { diffPolicies } from './diff-policies.js';
import { changeLines, summaryText } from './render-diff.js';

/** So many changes are told one by one, in so many characters each. */
export const MAX_TOLD = 20;
export const MAX_TOLD_CHARACTERS = 300;

/** What a reload changed, for a log: bounded, however large the policies are. */
export interface ToldChanges {
  /** As `weir diff` ends: `2 tighten, 1 loosens`, or `nothing changes`. */
  readonly summary: string;
  /** As `weir diff` prints them, with the domain that each is about. */
  readonly lines: readonly { readonly domain: string; readonly text: string }[];
  /** How many lines are left out. */
  readonly more: number;
}

/** Compares as `weir diff` does, and keeps as much as a log shows. `nowMicros` is the wall clock. */
export function tellChanges(before: PolicySet, after: PolicySet, nowMicros: number): ToldChanges {
  const changes = diffPolicies(before, after, nowMicros);
  const lines = changeLines(changes);
  return {
    summary: summaryText(summaryOf(changes)),
    lines: lines.slice(0, MAX_TOLD).map(({ domain, text }) => ({ domain: shown(domain), text: shown(text) })),
    more: Math.max(lines.length - MAX_TOLD, 0),
  };
}

function shown(text: string): string {
  const plain = printable(text.slice(0, MAX_TOLD_CHARACTERS));
  return text.length > MAX_TOLD_CHARACTERS ? `${plain}…` : plain;
}
