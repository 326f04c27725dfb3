import { printableLine } from '../../printable.js';
import { firstNames, quantity } from '../../quantity.js';
import { shellText } from '../show/shell-text.js';
import { type DiffSummary, type Effect, type PolicyChange, summaryOf } from './change.js';

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
export function changeLines(
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

/** Returns the summary: `2 tighten, 1 loosens, 3 added (1 tightens), 1 removed`. */
export function summaryText(summary: DiffSummary): string {
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
  return count === 0 ? '' : quantity(count, one, many);
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
  return `${group.length} rules (${firstNames(paths, PATHS_SHOWN)}): ${effectText(first)}: ${first.text}`;
}

/** The word for each effect. The summary uses the same words. */
const EFFECT_WORDS: Readonly<Record<Effect, string>> = {
  tightens: 'tightens',
  loosens: 'loosens',
  appears: 'added',
  vanishes: 'removed',
  changes: 'changes',
};

/** Returns `tightens` or, for example, `added (tightens)`. */
function effectText({ effect, tightens }: PolicyChange): string {
  const word = EFFECT_WORDS[effect];
  return tightens && effect !== 'tightens' ? `${word} (tightens)` : word;
}
