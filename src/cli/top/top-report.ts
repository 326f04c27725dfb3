import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { printable } from '../../printable.js';
import { type Column, columnsOf, cutToColumns, padded, tableLines } from '../screen/columns.js';
import { entriesText, secondsText } from '../screen/value-text.js';

const COLUMNS: readonly Column[] = [
  { heading: 'DENIED', side: 'right' },
  { heading: 'USED', side: 'right' },
  { heading: 'OF LIMIT', side: 'right' },
  { heading: 'RULE', side: 'left' },
  { heading: 'ENTRIES', side: 'left' },
];

/** Widths of the number columns of {@link topRows}: fixed, and at least as wide as their headings. */
const NUMBER_WIDTHS = COLUMNS.flatMap(({ heading, side }) =>
  side === 'right' ? Math.max(heading.length, 7) : [],
);
/** Minimum widths of a rule and of entries, and the maximum share of the remaining width for a rule. */
const [MIN_RULE_WIDTH, MIN_ENTRIES_WIDTH] = [6, 7];
const MAX_RULE_SHARE = 0.4;
/** Number of spaces between two cells. */
const GAP = 2;

/** Formats the answer with full lines, for files and pipes. */
export function plainTop(answer: TopAnswer, from: string): readonly string[] {
  const rows = answer.top.map((bucket) => [
    String(bucket.denied),
    String(bucket.used),
    percent(bucket.used_ratio),
    ruleText(bucket, hasSeveralDomains(answer.top)),
    entriesText(bucket.entries),
  ]);
  const table = rows.length === 0 ? [nothingText(answer)] : tableLines(COLUMNS, rows);
  return [`${coverText(answer)}, ${from}`, errorText(answer), '', ...table];
}

/** Returns `most denied in the last minute`. */
export function coverText({ by, of }: Pick<TopAnswer, 'by' | 'of'>): string {
  return `most ${by} in the last ${of}`;
}

/** Returns a line with the possible error of the numbers, the sampling rate and an incomplete period. */
export function errorText({ error, sampled, covers, of }: TopAnswer): string {
  const whole = of === 'minute' ? 60 : 3600;
  const parts = [
    error.denied === 0 && error.used === 0
      ? 'exact numbers'
      : `numbers are too high by at most ${shortNumber(error.denied)} denied requests and ` +
        `${shortNumber(error.used)} used hits`,
    ...(sampled > 1 ? [`estimated from 1 in ${sampled} decisions`] : []),
    ...(covers < whole * 0.95 ? [`only ${secondsText(covers)} of data so far`] : []),
  ];
  return parts.join('; ');
}

/** Returns the line shown if there are no rows. */
export function nothingText({ by, of }: Pick<TopAnswer, 'by' | 'of'>): string {
  return by === 'denied'
    ? `no requests were denied in the last ${of}`
    : `no hits were used in the last ${of}`;
}

/** Returns whether the domain, rule or entries of a bucket contain a string, ignoring case. */
export function hasText(bucket: TopBucket, text: string): boolean {
  const whole = `${bucket.domain} ${bucket.rule} ${entriesText(bucket.entries)}`;
  return whole.toLowerCase().includes(text.toLowerCase());
}

/** Formats a heading and rows for a screen that is `columns` wide. Columns that do not fit are omitted. */
export function topRows(top: readonly TopBucket[], columns: number): readonly string[] {
  const several = hasSeveralDomains(top);
  const rules = top.map((bucket) => ruleText(bucket, several));
  // The last column of the screen stays empty, because terminals differ in how they wrap there.
  const { numbers, entries, room } = fittingColumns(columns - 1);
  const widest = Math.max(MIN_RULE_WIDTH, ...rules.map(columnsOf));
  const width = entries
    ? Math.min(widest, Math.max(MIN_RULE_WIDTH, Math.floor(room * MAX_RULE_SHARE)))
    : room;
  const row = (figures: readonly string[], rule: string, whose: string): string =>
    [
      ...figures.slice(0, numbers).map((figure, at) => padded(figure, NUMBER_WIDTHS[at] ?? 0, 'right')),
      padded(cutToColumns(rule, width), width),
      ...(entries ? [cutToColumns(whose, room - width - GAP)] : []),
    ]
      .join(' '.repeat(GAP))
      .trimEnd();
  const [denied = '', used = '', ratio = '', rule = '', whose = ''] = COLUMNS.map(({ heading }) => heading);
  return [
    row([denied, used, ratio], rule, whose),
    ...top.map((bucket, at) =>
      row(
        [shortNumber(bucket.denied), shortNumber(bucket.used), percent(bucket.used_ratio)],
        rules[at] ?? '',
        entriesText(bucket.entries),
      ),
    ),
  ];
}

/** Returns how many number columns fit, whether entries fit, and the width left for the rule and the entries. */
function fittingColumns(columns: number): { numbers: number; entries: boolean; room: number } {
  const remainingWidth = (numbers: number): number =>
    columns - NUMBER_WIDTHS.slice(0, numbers).reduce((sum, width) => sum + width + GAP, 0);
  for (let numbers = NUMBER_WIDTHS.length; numbers > 0; numbers--) {
    const room = remainingWidth(numbers);
    if (room >= MIN_RULE_WIDTH + GAP + MIN_ENTRIES_WIDTH) return { numbers, entries: true, room };
  }
  return { numbers: 1, entries: false, room: remainingWidth(1) };
}

function hasSeveralDomains(top: readonly TopBucket[]): boolean {
  return top.some(({ domain }) => domain !== top[0]?.domain);
}

function ruleText({ domain, rule, plan }: TopBucket, withDomain: boolean): string {
  return printable(`${withDomain ? `${domain}: ` : ''}${rule}${plan === undefined ? '' : ` (plan ${plan})`}`);
}

function percent(ratio: number): string {
  return `${Math.round(ratio * 100)}%`;
}

/** Formats a number in at most seven characters. */
function shortNumber(number: number): string {
  const whole = Math.round(number);
  if (whole < 1e7) return String(whole);
  const units = ['M', 'G', 'T', 'P', 'E'];
  let [value, at] = [whole / 1e6, 0];
  for (; value >= 9999.5 && at < units.length - 1; at++) value /= 1000;
  return `${value < 99.95 ? value.toFixed(1) : Math.round(value)}${units[at]}`;
}
