import type { PolicySet } from '../../policy/policy-set.js';
import { printable } from '../../printable.js';
import { summaryOf } from './change.js';
import { diffPolicies } from './diff-policies.js';
import { changeLines, summaryText } from './render-diff.js';

/** Maximum number of changes that are listed, and maximum length of each in characters. */
export const MAX_LISTED_CHANGES = 20;
export const MAX_CHANGE_CHARACTERS = 300;

/** The changes of a reload for a log, of bounded size for policies of any size. */
export interface ChangeSummary {
  /** Last line of `weir diff`: `2 tighten, 1 loosens`, or `nothing changes`. */
  readonly summary: string;
  /** Lines of `weir diff`, each with its domain. */
  readonly lines: readonly { readonly domain: string; readonly text: string }[];
  /** Number of lines that are left out. */
  readonly more: number;
}

/** Compares two sets of policies as `weir diff` does, and keeps what a log shows. `nowMicros` is the wall clock. */
export function summarizeChanges(before: PolicySet, after: PolicySet, nowMicros: number): ChangeSummary {
  const changes = diffPolicies(before, after, nowMicros);
  const lines = changeLines(changes);
  return {
    summary: summaryText(summaryOf(changes)),
    lines: lines
      .slice(0, MAX_LISTED_CHANGES)
      .map(({ domain, text }) => ({ domain: shown(domain), text: shown(text) })),
    more: Math.max(lines.length - MAX_LISTED_CHANGES, 0),
  };
}

function shown(text: string): string {
  const plain = printable(text.slice(0, MAX_CHANGE_CHARACTERS));
  return text.length > MAX_CHANGE_CHARACTERS ? `${plain}…` : plain;
}
