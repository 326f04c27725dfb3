import { printableLine } from '../../printable.js';
import { candidateSentences } from '../../replay/report/candidates.js';
import { headline } from '../../replay/report/headline.js';
import { logSentences } from '../../replay/report/log-sentences.js';
import { entryOf, entryText, ruleText, shownName, shownPath } from '../../replay/report/names.js';
import { counted, countText, intervalText, lostShare, shareText } from '../../replay/report/numbers.js';
import type { Affected, LogSummary, PeakUse, ReplayReport, RuleReport } from '../../replay/report/report.js';
import { type Column, cutToColumns, splitTableLines, wrapped } from '../screen/columns.js';
import { secondsText } from '../screen/value-text.js';

/** Maximum share of the width for names, and their minimum and maximum width in columns. */
const NAME_SHARE = 0.4;
const [MIN_NAME, MAX_NAME] = [8, 60];
/** Width of the report without a terminal. */
const DEFAULT_WIDTH = 100;
/** Maximum number of characters of an unreadable line. */
const MAX_EXAMPLE = 200;
const MAX_FILES = 3;

/** Columns after the name. A further table has the columns that do not fit. */
const EFFECTS: readonly Column[] = [
  'REQUESTS',
  'BEFORE',
  'AFTER',
  'NEWLY DENIED',
  'SHARE',
  'NEWLY ALLOWED',
  'PEAK USE',
  'PEAK/S',
  'LONGEST',
  'FIRST DENIED',
  'LAST DENIED',
].map((heading) => ({ heading, side: 'right' }));

/** Returns the report as text for a terminal that is `width` columns wide, a file or a pipe. */
export function textReport(report: ReplayReport, width = DEFAULT_WIDTH): string {
  const sections = [
    headline(report).flatMap((sentence) => wrapped(sentence, width)),
    report.warnings.flatMap((one) => wrapped(`Warning: ${printableLine(one)}`, width)),
    ruleTable(report, width),
    groupTable(report, width),
    capacityTable(report, width),
    logLines(report, width),
    noteLines(report, width),
  ];
  const shown = sections.filter((lines) => lines.length > 0);
  return `${shown.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function ruleTable({ rules, total }: ReplayReport, width: number): readonly string[] {
  if (rules.length === 0) return [];
  const rows = rules.map((rule) => [ruleCell(rule, rules, width), ...effectCells(rule)]);
  return table('RULE', 'rule', [...rows, ['(all requests)', ...effectCells(total)]], width);
}

function groupTable({ groups }: ReplayReport, width: number): readonly string[] {
  if (groups === undefined || groups.shown.length === 0) return [];
  const rows = groups.shown.map((group) => [nameText(shownName(group.value), width), ...effectCells(group)]);
  const more = groups.count - rows.length;
  const by = entryText(entryOf(groups));
  return [...table(by.toUpperCase(), by, rows, width), ...(more > 0 ? [`and ${countText(more)} more`] : [])];
}

/** Returns the table of rules or groups, with a sentence that explains it. */
function table(
  name: string,
  by: string,
  rows: readonly (readonly string[])[],
  width: number,
): readonly string[] {
  const columns: readonly Column[] = [{ heading: nameText(name, width), side: 'left' }, ...EFFECTS];
  const sentence = `Denied requests before and after the change, by ${by}:`;
  return [...wrapped(sentence, width), ...splitTableLines(columns, rows, width)];
}

function effectCells(affected: Affected & Partial<PeakUse>): readonly string[] {
  return [
    countText(affected.requests),
    countText(affected.deniedBefore),
    intervalText(affected.deniedAfter),
    intervalText(affected.newlyDenied),
    lostShare(affected),
    intervalText(affected.newlyAllowed),
    affected.peakUse ? shareText(affected.peakUse) : '–',
    countText(affected.peakPerSecond),
    affected.longestDeniedSeconds === 0 ? '–' : secondsText(affected.longestDeniedSeconds),
    affected.firstDenied ?? '–',
    affected.lastDenied ?? '–',
  ];
}

/** Returns the capacities that would have been enough, or nothing if the log cannot tell. */
function capacityTable({ rules }: ReplayReport, width: number): readonly string[] {
  const rows = rules.flatMap((rule) =>
    rule.capacity === undefined
      ? []
      : [
          [
            ruleCell(rule, rules, width),
            countText(rule.capacity.none),
            countText(rule.capacity.thousandth),
            countText(rule.capacity.hundredth),
            printableLine(rule.limit),
          ],
        ],
  );
  if (rows.length === 0) return [];
  const columns: readonly Column[] = [
    { heading: nameText('RULE', width), side: 'left' },
    { heading: 'DENIES NONE', side: 'right' },
    { heading: 'AT MOST 0.1%', side: 'right' },
    { heading: 'AT MOST 1%', side: 'right' },
    { heading: 'LIMIT', side: 'left' },
  ];
  const sentence =
    'Size of a bucket with the refill of the rule, requests of a window, or requests in flight, that would have ' +
    'denied so many requests:';
  return [...wrapped(sentence, width), ...splitTableLines(columns, rows, width)];
}

function logLines({ log }: ReplayReport, width: number): readonly string[] {
  const sentences = [readSentence(log), ...logSentences(log)];
  const examples = log.unreadable.flatMap(({ reason, lines, example }) => [
    ...wrapped(
      `${counted(lines, 'line', 'lines')} could not be read, because each one ${printableLine(reason)}, for example:`,
      width,
    ),
    `  ${cutToColumns(printableLine(example.slice(0, MAX_EXAMPLE)), width - 2)}`,
  ]);
  return [...sentences.flatMap((sentence) => wrapped(sentence, width)), ...examples];
}

function readSentence({ files, format, lines, requests, first, last }: LogSummary): string {
  const named = files.slice(0, MAX_FILES).map(shownPath);
  const more = files.length - named.length;
  const from = more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ');
  const span = first === undefined || last === undefined ? '' : ` from ${first} to ${last}`;
  return (
    `Read ${counted(lines, 'line', 'lines')} from ${from} (${printableLine(format)}): ` +
    `${counted(requests, 'request', 'requests')}${span}.`
  );
}

function noteLines(report: ReplayReport, width: number): readonly string[] {
  return [...candidateSentences(report), ...report.notes].flatMap((note) =>
    wrapped(printableLine(note), width - 2).map((line, at) => (at === 0 ? `- ${line}` : `  ${line}`)),
  );
}

function ruleCell(rule: RuleReport, rules: readonly RuleReport[], width: number): string {
  return nameText(ruleText(rule, rules), width, 'end');
}

function nameText(name: string, width: number, kept: 'start' | 'end' = 'start'): string {
  return cutToColumns(name, Math.max(MIN_NAME, Math.min(MAX_NAME, Math.floor(width * NAME_SHARE))), kept);
}
