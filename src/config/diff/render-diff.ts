import type { PolicySet } from '../../policy/compiled-policy.js';
import { printable, printableLine, shellText } from '../../runtime/printable.js';
import { listSome, plural } from '../../runtime/texts.js';
import { type DiffSummary, type Effect, type PolicyChange, summaryOf } from './change.js';
import { diffPolicies } from './diff-policies.js';

/** Settings that many rules inherit from one place. Equal changes of these settings are reported once. */
const INHERITED_SETTINGS: ReadonlySet<string> = new Set(['phase', 'on_store_failure', 'enforce_percent']);
/** Minimum number of equal changes that are grouped in one line. */
const MIN_GROUP_SIZE = 4;
const PATHS_SHOWN = 2;

/** Returns the changes as text: domains, one line per change, and the summary as the last line. */
export function renderDiff(changes: readonly PolicyChange[]): string {
  const lines: string[] = [];
  let domain: string | undefined;
  for (const line of changeLines(changes)) {
    if (line.domain !== domain) {
      if (domain !== undefined) lines.push('');
      lines.push(`domain ${shellText(line.domain)}`);
      domain = line.domain;
    }
    lines.push(`  ${printableLine(line.text)}`);
  }
  if (domain !== undefined) lines.push('');
  lines.push(summaryText(summaryOf(changes)));
  return `${lines.join('\n')}\n`;
}

/** Returns one sentence per change, or per group of equal changes, domain by domain. */
function changeLines(
  changes: readonly PolicyChange[],
): readonly { readonly domain: string; readonly text: string }[] {
  const byDomain = new Map<string, PolicyChange[]>();
  for (const change of changes) {
    const known = byDomain.get(change.domain);
    if (known === undefined) byDomain.set(change.domain, [change]);
    else known.push(change);
  }
  return [...byDomain].flatMap(([domain, own]) => domainLines(own).map((text) => ({ domain, text })));
}

/** Formats the summary: `2 tighten, 1 loosens, 3 added (1 tightens), 1 removed`. */
function summaryText(summary: DiffSummary): string {
  const parts = [
    counted(summary.tighten, 'tightens', 'tighten'),
    counted(summary.loosen, 'loosens', 'loosen'),
    counted(summary.appear, EFFECT_WORDS.appears) + tightening(summary.tightenByAppearing),
    counted(summary.vanish, EFFECT_WORDS.vanishes) + tightening(summary.tightenByVanishing),
    counted(summary.change, 'other change', 'other changes'),
  ];
  return parts.filter((part) => part !== '').join(', ') || 'nothing changes';
}

function counted(count: number, one: string, many = one): string {
  return count === 0 ? '' : plural(count, one, many);
}

function tightening(count: number): string {
  return count === 0 ? '' : ` (${counted(count, 'tightens', 'tighten')})`;
}

function domainLines(changes: readonly PolicyChange[]): readonly string[] {
  const groups = new Map<string, PolicyChange[]>();
  for (const change of changes) {
    const together = INHERITED_SETTINGS.has(change.setting) && change.path !== '';
    const name = together ? `${change.effect} ${change.text}` : `${groups.size}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [change]);
    else group.push(change);
  }
  return [...groups.values()].flatMap((group) =>
    group.length < MIN_GROUP_SIZE ? group.map(line) : [groupLine(group)],
  );
}

function line(change: PolicyChange): string {
  return `${change.path === '' ? '' : `${change.path}: `}${effectText(change)}: ${change.text}`;
}

function groupLine(group: readonly PolicyChange[]): string {
  const paths = group.map(({ path }) => path);
  const [first] = group as [PolicyChange];
  return `${group.length} rules (${listSome(paths, PATHS_SHOWN)}): ${effectText(first)}: ${first.text}`;
}

/** The word for each effect. The summary uses the same words. */
const EFFECT_WORDS: Readonly<Record<Effect, string>> = {
  tightens: 'tightens',
  loosens: 'loosens',
  appears: 'added',
  vanishes: 'removed',
  changes: 'changes',
};

/** `tightens` or, for example, `added (tightens)`. */
function effectText({ effect, tightens }: PolicyChange): string {
  const word = EFFECT_WORDS[effect];
  return tightens && effect !== 'tightens' ? `${word} (tightens)` : word;
}

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
