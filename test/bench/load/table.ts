import type { Row } from './measure-case.js';

/** Titles of the columns. CPU times are in microseconds per decision, and latencies are in milliseconds. */
export const TITLES = [
  'server µs',
  'Redis µs',
  'together',
  '/ empty',
  'decisions/s',
  'p50 ms',
  'p99 ms',
  'p99.9 ms',
  'longest ms',
  'RSS MB',
  'client µs',
] as const;

const NONE = '–';

/** Returns the cells of a row, in the order of {@link TITLES}. */
export function cells(row: Row): string[] {
  const millis = (micros: number) => (micros / 1000).toFixed(2);
  return [
    row.serverMicros.toFixed(1),
    row.redisMicros?.toFixed(1) ?? NONE,
    (row.serverMicros + (row.redisMicros ?? 0)).toFixed(1),
    row.ratio?.toFixed(2) ?? NONE,
    row.perSecond.toFixed(0),
    millis(row.p50Micros),
    millis(row.p99Micros),
    millis(row.p999Micros),
    millis(row.maxMicros),
    (row.residentBytes / 1e6).toFixed(0),
    row.clientMicros.toFixed(1),
  ];
}

/** Returns a remark on a row, or an empty string. */
function remark(row: Row): string {
  if (row.pingPongRatio !== undefined) return `${row.pingPongRatio.toFixed(2)} × ping-pong`;
  if (row.clusterRatio !== undefined) return `${row.clusterRatio.toFixed(2)} × Redis`;
  if (row.tripsPer100 !== undefined) {
    const ratios = [
      row.leaseRatio === undefined ? '' : `, ${row.leaseRatio.toFixed(2)} × without`,
      row.memoryRatio === undefined ? '' : `, ${row.memoryRatio.toFixed(2)} × memory`,
      row.allowedPer100 === undefined ? '' : `, ${row.allowedPer100.toFixed(1)} allowed per 100`,
    ];
    return `${row.tripsPer100.toFixed(1)} trips per 100${ratios.join('')}`;
  }
  return row.bytesPerTenant === undefined ? '' : `${row.bytesPerTenant.toFixed(0)} bytes per new tenant`;
}

const NAME_WIDTH = 34;
/** Widths of the columns, with at least two spaces between columns. */
const WIDTHS: readonly number[] = TITLES.map((title) => Math.max(title.length + 2, 11));

export function textHeading(): string {
  return `${''.padEnd(NAME_WIDTH)} ${inColumns(TITLES)}`;
}

function inColumns(texts: readonly string[]): string {
  return texts.map((text, i) => text.padStart(WIDTHS[i] ?? 0)).join('');
}

/** Formats the rows of a case for a terminal. */
export function textRows(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const note = remark(row);
    const text = `  ${row.target}`.padEnd(NAME_WIDTH);
    return `${text} ${inColumns(cells(row))}${note === '' ? '' : `  ${note}`}`;
  });
  return [rows[0]?.case ?? '', ...lines].join('\n');
}

/** Formats all rows as a Markdown table. */
export function markdownTable(rows: readonly Row[]): string {
  const head = ['case', 'server', ...TITLES];
  const lines = [`| ${head.join(' | ')} |`, `|---|---|${TITLES.map(() => '--:').join('|')}|`];
  let last = '';
  for (const row of rows) {
    const note = remark(row);
    const target = note === '' ? row.target : `${row.target} (${note})`;
    lines.push(`| ${[row.case === last ? '' : row.case, target, ...cells(row)].join(' | ')} |`);
    last = row.case;
  }
  return lines.join('\n');
}
