import type { Measurement } from './measure-case.js';
import { recordName } from './recorded.js';

/** A row of the table: a measurement with its failures. */
export interface Row {
  readonly measured: Measurement;
  readonly failures: readonly string[];
  /** Number of times that the case was measured. */
  readonly attempts: number;
}

const HEAD = [
  ...['case (connections)', 'KB', 'CPU ms', 'µs/KB', 'loop ms', 'by clock'],
  ...['p50', 'p99', 'longest', 'answers', ''],
];

const digits = (value: number, count = 1): string => value.toFixed(value >= 100 ? 0 : count);

/** Returns the answers with their counts, most frequent first: `0 ×120, reset ×3`. */
function answersOf(answers: Measurement['answers']): string {
  return Object.entries(answers)
    .sort(([, one], [, other]) => other - one)
    .slice(0, 3)
    .map(([what, count]) => `${what} ×${count}`)
    .join(', ');
}

function cells({ measured, failures, attempts }: Row): string[] {
  const { kilobytes, cpuMicros, microsPerKilobyte, delayMs, delayWallMs, innocent, settled } = measured;
  const notes = [
    ...(failures.length > 0 ? [`FAILS: ${failures.join('; ')}`] : []),
    ...(attempts > 1 ? [`best of ${attempts}`] : []),
    ...(settled ? [] : ['still busy when the connections closed']),
  ];
  return [
    recordName(measured),
    digits(kilobytes, 0),
    digits(cpuMicros / 1000, 0),
    digits(microsPerKilobyte, 2),
    digits(delayMs),
    digits(delayWallMs),
    digits(innocent.p50Ms),
    digits(innocent.p99Ms),
    digits(innocent.longestMs),
    answersOf(measured.answers),
    notes.join('; '),
  ];
}

/** Returns a row as a line of text, to print it before the table is complete. */
export function rowLine(row: Row): string {
  const [name, ...figures] = cells(row);
  return `${name}: ${figures.map((figure, at) => (at < 8 ? `${HEAD[at + 1]} ${figure}` : figure)).join(', ')}`;
}

/** Returns the table as text for a terminal. */
export function textTable(rows: readonly Row[]): string {
  const all = [HEAD, ...rows.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] as number;
          if (column === row.length - 1) return cell;
          return column === 0 || column === 9 ? cell.padEnd(width) : cell.padStart(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Returns the table in Markdown. */
export function markdownTable(rows: readonly Row[]): string {
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell) => cell.replaceAll('|', '\\|').replaceAll('*', '\\*')).join(' | ')} |`;
  const rule = HEAD.map((_, column) => (column === 0 || column >= 9 ? '---' : '---:'));
  return [line(HEAD), `|${rule.join('|')}|`, ...rows.map((row) => line(cells(row)))].join('\n');
}
