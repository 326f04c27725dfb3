import { printableLine } from '../../printable.js';
import type { RuleReport } from './report.js';

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

/** Returns the noun for several values of an entry key: `tenants`, `companies`, `x-tenant values`. */
export function groupNoun(by: string, count: number): string {
  if (!/^[a-z]{1,40}$/.test(by)) return `${shownName(by)} ${count === 1 ? 'value' : 'values'}`;
  if (count === 1) return by;
  if (/[^aeiou]y$/.test(by)) return `${by.slice(0, -1)}ies`;
  return /(?:s|x|ch|sh)$/.test(by) ? `${by}es` : `${by}s`;
}
