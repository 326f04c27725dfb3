import { nearest } from '../nearest-name.js';
import { quantity } from '../quantity.js';
import type { Need } from './envoy/log-fields.js';
import { memberList } from './log/choose-format.js';
import type { Columns } from './log/columns.js';
import { formatOf, type Operator } from './log/format-string.js';
import { HAS_VALUE, OCCURS } from './log/lines/line-fields.js';
import type { JsonMember, LogFormat } from './log/log-format.js';
import type { ReadTotals } from './log/logged-request.js';
import type { OpenLog } from './log/open-log.js';
import { readOperators } from './log/read/log-file.js';

/** A log that was read, and the values that it should have. */
interface ReadLog {
  readonly log: Pick<OpenLog, 'formats' | 'members'>;
  readonly columns: Columns;
  readonly needs: readonly Need[];
  readonly totals: ReadTotals;
}

/**
 * Returns a sentence for each member of the log's format that no line has, and for each value that no line has although
 * the rate limits need it. A misspelled member of a mapping is the usual reason.
 */
export function absentValues({ log, columns, needs, totals }: ReadLog): string[] {
  const { requests } = totals;
  if (requests === 0) return [];
  const operators = readOperators(columns.operators);
  const seenOf = (wanted: readonly Operator[]): number =>
    Math.max(...wanted.map((operator) => totals.seen[operators.indexOf(operator)] ?? 0));
  const lines = `any of ${quantity(requests, 'line')}`;
  const found = new Map<string, string>();
  for (const member of log.formats.flatMap(membersOf)) {
    const isRead = member.operators.some((operator) => operators.includes(operator));
    if (!isRead || seenOf(member.operators) >= OCCURS) continue;
    const name = member.path.join('.');
    const using = needs.filter((need) => need.operators.some((one) => member.operators.includes(one)));
    found.set(
      name,
      `The member "${name}" does not occur in ${lines}${usersText(using)}. ${remedy(member, log)}`,
    );
  }
  for (const need of needs) {
    if (need.optional || seenOf(need.operators) >= HAS_VALUE) continue;
    const member = log.formats
      .flatMap(membersOf)
      .find((one) => one.operators.some((operator) => need.operators.includes(operator)));
    const name = member?.path.join('.') ?? need.format;
    const what = member === undefined ? need.format : `The member "${name}"`;
    const using = needs.filter(({ format }) => format === need.format);
    if (!found.has(name)) found.set(name, `${what} has no value in ${lines}${usersText(using)}.`);
  }
  return [...found.values()];
}

function membersOf({ syntax }: LogFormat): readonly JsonMember[] {
  return syntax.kind === 'json' ? syntax.members : [];
}

/** Returns the parts of the configuration that need a value: ` (needed for envoy.yaml:12: request_headers)`. */
function usersText(needs: readonly Need[]): string {
  const users = new Set(needs.map(({ file, at, user }) => `${file}:${at.line}: ${user}`));
  return users.size === 0 ? '' : ` (needed for ${[...users].join(', ')})`;
}

function remedy(
  { path, operators: [operator = ''] }: JsonMember,
  { members }: Pick<OpenLog, 'members'>,
): string {
  const name = path.join('.');
  const meant = nearest(name, members);
  const guess = meant === undefined ? '' : ` Did you mean "${meant}"?`;
  return (
    `The lines have the members ${memberList(members)}.${guess} Correct the name, or add the member to json_format ` +
    `of the access_log: ${name}: "${formatOf(operator)}".`
  );
}
