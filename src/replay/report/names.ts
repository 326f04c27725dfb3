import { printableLine } from '../../printable.js';
import type { NamedEntry } from '../entry-sources.js';
import type { GroupsReport, RuleReport } from './report.js';

type NamedRule = Pick<RuleReport, 'domain' | 'rule'>;

/** Maximum number of characters of a value from the log, and of the path of a rule, that a report shows. */
const [MAX_VALUE, MAX_PATH] = [40, 100];

/** Returns a value from the log on one line, without characters that change how the text is shown, and cut. */
export function shownName(value: string, most = MAX_VALUE): string {
  if (value === '') return '(empty)';
  const characters = Array.from(value.slice(0, most * 2));
  const isCut = characters.length > most || value.length > most * 2;
  return printableLine(isCut ? characters.slice(0, most - 1).join('') : value) + (isCut ? '…' : '');
}

/** Returns a path in the same way. A long path is cut at its start, because paths differ at their ends. */
export function shownPath(path: string): string {
  const characters = Array.from(path.slice(-2 * MAX_PATH));
  const isCut = characters.length > MAX_PATH || path.length > 2 * MAX_PATH;
  return (isCut ? '…' : '') + printableLine(isCut ? characters.slice(1 - MAX_PATH).join('') : path);
}

/** A level of `Rule.path` whose value is equal to its key, as Envoy Gateway writes it. */
const SAME_VALUE = /(?<=^|\/)([^=]+)=\1(?=$|[/[])/g;

/** Returns the path of a rule, with only the key of a level whose value is equal to its key. */
export function shownRule(path: string): string {
  return shownPath(path.slice(-10 * MAX_PATH).replaceAll(SAME_VALUE, '$1'));
}

/** Returns the path of a rule, with its domain if the rules belong to several domains. */
export function ruleText({ domain, rule }: NamedRule, rules: readonly NamedRule[]): string {
  const several = rules.some((other) => other.domain !== rules[0]?.domain);
  return several ? `${shownName(domain)}: ${shownRule(rule)}` : shownRule(rule);
}

/** A key that is a noun. */
const NOUN = /^[a-z]{1,40}$/;

/** Returns the name of an entry for people: its key, or its source if the key is not a noun: `rule-0-match-0`. */
export function entryText({ key, source }: NamedEntry): string {
  return shownName(source === undefined || NOUN.test(key) ? key : source);
}

/** Returns the noun for some values of an entry: `tenants`, `companies`, `callers (x-tenant)`, `plan-1 values`. */
export function groupNoun({ key, source }: NamedEntry, count: number): string {
  if (!NOUN.test(key)) {
    if (source !== undefined) return `${count === 1 ? 'caller' : 'callers'} (${shownName(source)})`;
    return `${shownName(key)} ${count === 1 ? 'value' : 'values'}`;
  }
  if (count === 1) return key;
  if (/[^aeiou]y$/.test(key)) return `${key.slice(0, -1)}ies`;
  return /(?:s|x|ch|sh)$/.test(key) ? `${key}es` : `${key}s`;
}

/** Returns the entry of `--by`. */
export function entryOf({ by, source }: GroupsReport): NamedEntry {
  return { key: by, ...(source !== undefined && { source }) };
}
