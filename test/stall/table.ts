import { tableLines } from '../../src/cli/table.js';
import type { Measurement } from './measure-case.js';

/** A row of the table: a measurement with its failures. */
export interface Row {
  readonly measured: Measurement;
  readonly failures: readonly string[];
}

const HEAD = [
  ...['case (connections)', 'KB', 'core %', 'loop ms', 'by clock'],
  ...['p50', 'p99', 'p99.9', 'longest', 'without attack', 'answers', ''],
];
const COLUMNS = HEAD.map((heading, at) => ({
  heading,
  side: at === 0 || at >= 10 ? ('left' as const) : ('right' as const),
}));

const digits = (value: number, count = 1): string => value.toFixed(value >= 100 ? 0 : count);

/** Returns the answers with their counts, most frequent first: `0 OK ×120, reset ×3`. */
function answersOf(answers: Measurement['answers']): string {
  return Object.entries(answers)
    .sort(([, one], [, other]) => other - one)
    .slice(0, 5)
    .map(([what, count]) => `${what} ×${count}`)
    .join(', ');
}

function cells({ measured, failures }: Row): string[] {
  const { kilobytes, coreShare, delayMs, delayWallMs, innocent, quiet, settled } = measured;
  const notes = [
    ...(failures.length > 0 ? [`FAILS: ${failures.join('; ')}`] : []),
    ...(settled ? [] : ['still busy when the connections closed']),
  ];
  return [
    `${measured.name} (${measured.connections})`,
    digits(kilobytes, 0),
    digits(100 * coreShare, 0),
    digits(delayMs),
    digits(delayWallMs),
    digits(innocent.p50Ms),
    digits(innocent.p99Ms),
    digits(innocent.p999Ms),
    digits(innocent.longestMs),
    quiet?.map(({ p999Ms }) => digits(p999Ms)).join(', ') ?? '',
    answersOf(measured.answers),
    notes.join('; '),
  ];
}

/** Returns a row as a line of text, to print it before the table is complete. */
export function rowLine(row: Row): string {
  const [name, ...figures] = cells(row);
  return `${name}: ${figures.map((figure, at) => `${HEAD[at + 1]} ${figure}`.trim()).join(', ')}`;
}

/** Returns the table as text for a terminal. */
export function textTable(rows: readonly Row[]): string {
  return tableLines(COLUMNS, rows.map(cells)).join('\n');
}
