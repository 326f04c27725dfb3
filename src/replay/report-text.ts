import { printable, printableLine } from '../runtime/printable.js';
import { logName } from './log-lines.js';
import { countText, percentText, quantityText, type Report } from './report.js';

/** Formats a table: heading and cells, of which only the first column is aligned to the left. */
type TableLines = (headings: readonly string[], rows: readonly (readonly string[])[]) => readonly string[];

/** Number of callers that the text lists; `--json` writes all. */
const MAX_LISTED = 20;
/** Number of callers in the first sentence. */
const MAX_NAMED = 3;

type Counts = Report['total'];

/** Returns the report for people. `table` formats its tables. */
export function reportText(report: Report, table: TableLines): string {
  const tables = [rulesTable(report, table), limitsTable(report, table), callersTable(report, table)];
  const parts = [headline(report), ...(report.total.requests === 0 ? [] : tables)];
  return [...parts, ending(report)]
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join('\n')}\n`)
    .join('\n');
}

function headline(report: Report): readonly string[] {
  const { total, partial, over, rules, gate, doubt } = report;
  const lines: string[] = partial ? ['PARTIAL: the replay was stopped before the end of the logs.'] : [];
  if (total.requests === 0)
    return [...lines, 'There is nothing to replay: no line of the logs is a request.'];
  const share = ` (${percentText(total.newlyDenied / total.requests)})`;
  const newly = `${countText(total.newlyDenied)} of ${quantityText(total.requests, 'request')} would be newly denied`;
  lines.push(`${newly}${share}${hitCallers(report)}.`);
  if (doubt !== null && gate === null) lines.push(`These numbers are not reliable: ${doubt}.`);
  if (total.newlyAllowed > 0)
    lines.push(`${quantityText(total.newlyAllowed, 'request')} would be newly allowed.`);
  if (over > 0) {
    const named = rules.flatMap((one) =>
      one.over > 0 ? [`${printable(one.rule)} ${countText(one.over)}`] : [],
    );
    const why = '(phase, shadow_mode or enforce_percent)';
    const requests = quantityText(over, 'request');
    lines.push(`${requests} exceeded a limit that does not deny yet ${why}: ${named.join(', ')}.`);
  }
  if (gate !== null) lines.push(`--max-newly-denied ${gate.maxNewlyDenied}: ${gate.result}: ${gate.why}.`);
  return lines;
}

/** Names the callers that lose most requests. */
function hitCallers({ callers }: Report): string {
  const hit = callers?.rows.filter(({ newlyDenied }) => newlyDenied > 0) ?? [];
  if (callers === null || hit.length === 0) return '';
  const named = hit.slice(0, MAX_NAMED).map(({ caller, newlyDenied, requests }) => {
    const share = percentText(newlyDenied / requests);
    return `${printable(caller)} ${countText(newlyDenied)} of ${countText(requests)} (${share})`;
  });
  const rest = hit.length > MAX_NAMED ? ', …' : '';
  const all = quantityText(callers.rows.length, 'value');
  return `, from ${countText(hit.length)} of ${all} of ${printable(callers.key)}: ${named.join(', ')}${rest}`;
}

/** Heading of the rules that newly deny the requests of a caller. */
export const RULES_HEADING = 'NEWLY DENIED BY';
const COUNT_HEADINGS = ['REQUESTS', 'BEFORE', 'AFTER', 'NEWLY DENIED', 'SHARE', 'NEWLY ALLOWED'];

function cellsOf({ requests, before, after, newlyDenied, newlyAllowed }: Counts): readonly string[] {
  const share = requests === 0 ? '–' : percentText(newlyDenied / requests);
  return [
    countText(requests),
    countText(before),
    countText(after),
    countText(newlyDenied),
    share,
    countText(newlyAllowed),
  ];
}

/** Returns a function that names a rule, with its domain if the report has several. */
function namesOf({ rules }: Report): (rule: { readonly domain: string; readonly rule: string }) => string {
  const isOne = new Set(rules.map(({ domain }) => domain)).size === 1;
  return ({ domain, rule }) => printable(isOne ? rule : `${domain}: ${rule}`);
}

function rulesTable(report: Report, table: TableLines): readonly string[] {
  const { rules, withoutRule, total, against } = report;
  const nameOf = namesOf(report);
  const rows = rules.map((rule) => [nameOf(rule), ...cellsOf(rule)]);
  if (withoutRule.requests > 0) rows.push(['(no rule)', ...cellsOf(withoutRule)]);
  rows.push(['(all requests)', ...cellsOf(total)]);
  const before = against === null ? 'in the log' : `with ${printable(against)}`;
  const heading = `Denied requests by rule, before (${before}) and after (with ${printable(report.policy)}):`;
  return [heading, ...table(['RULE', ...COUNT_HEADINGS], rows)];
}

function limitsTable(report: Report, table: TableLines): readonly string[] {
  const { limits } = report;
  if (limits.length === 0) return [];
  const nameOf = namesOf(report);
  const cell = (limit: number | null): string => (limit === null ? '–' : countText(limit));
  const rows = limits.map((limit) => [
    nameOf(limit),
    ...[limit.deniesNobody, limit.deniesTenthPercent, limit.deniesOnePercent].map(cell),
    printable(limit.limit),
  ]);
  const reasons = limits.flatMap((limit) => (limit.why === null ? [] : [`${nameOf(limit)}: ${limit.why}.`]));
  return [
    'Smallest max_tokens (with the same refill), requests_per_unit or max that would have denied so many requests:',
    ...table(['RULE', 'NOBODY', 'AT MOST 0.1%', 'AT MOST 1%', 'NOW'], rows),
    ...reasons,
  ];
}

function callersTable(report: Report, table: TableLines): readonly string[] {
  const { callers } = report;
  if (callers === null) return [];
  const { key, rows, others, without } = callers;
  const nameOf = namesOf(report);
  // With one rule, the column would repeat it for each caller.
  const showsRules = report.rules.filter(({ newlyDenied }) => newlyDenied > 0).length > 1;
  const row = (name: string, counts: typeof others): readonly string[] => [
    name,
    ...cellsOf(counts),
    ...(showsRules ? [counts.newlyDeniedBy.map(nameOf).join(', ')] : []),
  ];
  const listed = rows.slice(0, MAX_LISTED).map(({ caller, ...counts }) => row(printable(caller), counts));
  if (others.requests > 0) listed.push(row('(other)', others));
  if (without.requests > 0) listed.push(row(`(without ${printable(key)})`, without));
  const more = rows.length - MAX_LISTED;
  const rest = more > 0 ? [`… and ${quantityText(more, 'more value')}; --json writes all.`] : [];
  return [
    `Denied requests by ${printable(key)}:`,
    ...table(
      [printable(key).toUpperCase(), ...COUNT_HEADINGS, ...(showsRules ? [RULES_HEADING] : [])],
      listed,
    ),
    ...rest,
  ];
}

function ending({ logs, lines, total, from, to, unreadable, noRequests, notes }: Report): readonly string[] {
  const times = from === null ? '' : ` from ${from} to ${to}`;
  const requests = quantityText(total.requests, 'request');
  const read = `Read ${quantityText(lines, 'line')} of ${logs.map(logName).join(', ')}: ${requests}${times}.`;
  const left = (what: string, all: Report['unreadable']): readonly string[] =>
    all.map(
      ({ reason, lines: count, first, remedy }) =>
        `- ${what}: ${quantityText(count, 'line')} ${reason}, first ${first}` +
        (remedy === null || (what === 'No request' && total.requests > 0) ? '' : `: ${remedy}.`),
    );
  return [
    read,
    ...left('Unreadable', unreadable),
    ...left('No request', noRequests),
    ...notes.map((note) => `- ${note}`),
  ].map(printableLine);
}
