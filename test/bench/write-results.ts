import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { writePart } from '../support/docs/write-part.js';
import { repositoryRoot } from '../support/process/tools.js';
import { byCase, chart } from './chart.js';
import type { Row } from './load/measure-case.js';
import { markdownTable } from './load/table.js';
import type { BenchOptions } from './options.js';

const FOLDER = 'test/bench/results';
/** Page of the manual with the results. */
export const PAGE = 'docs/reference/cost.md';
const BEGIN = '<!-- bench: printed by npm run bench -- load --write -->';
const END = '<!-- bench end -->';
/** Columns of the table in the manual. The complete table is in {@link FOLDER}. */
const PAGE_COLUMNS = ['server µs', 'Redis µs', '/ empty', 'decisions/s', 'p50 ms', 'p99 ms'];

/** Cases of the table in the manual. */
const PAGE_CASES = [
  'one hot key',
  '1,000 tenants',
  'three masters',
  'many tenants',
  '10 descriptors',
  '10,000 rules',
  'all denied',
  'TLS',
  'behind Envoy',
  'new tenants arrive',
];

/** Describes the machine and the options of a run, without which the results have no meaning. */
function describeRun({ rounds, seconds, many }: BenchOptions): string {
  const tenants = many.toLocaleString('en');
  return `${describeMachine()}. Median of ${rounds} rounds of ${seconds} s, "many tenants" are ${tenants}`;
}

/** Returns the date, commit, Node.js version and processors of a measurement. */
export function describeMachine(): string {
  const processors = cpus();
  const model = (processors[0]?.model ?? 'unknown').replaceAll(/\s+/g, ' ').trim();
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });
  return [
    `${new Date().toISOString().slice(0, 10)}, commit ${commit.trim()}, Node ${process.version}`,
    `${processors.length} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GB`,
  ].join(', ');
}

/** Returns the table for the manual. */
function shortTable(rows: readonly Row[]): string {
  const lines = markdownTable(rows.filter((row) => PAGE_CASES.includes(row.case)))
    .split('\n')
    .map((line) => line.slice(2, -2).split(/ ?\| ?/));
  const kept = [0, 1, ...PAGE_COLUMNS.map((title) => (lines[0] as string[]).indexOf(title))];
  return lines
    .map((line, index) =>
      index === 1 ? markdownRule(kept.length) : `| ${kept.map((at) => line[at]).join(' | ')} |`,
    )
    .join('\n');
}

function markdownRule(columns: number): string {
  return `|---|---|${'--:|'.repeat(columns - 2)}`;
}

const CASES_NOT_IN_CHART = ['one call in flight', 'half rate, 1,000 tenants', 'new tenants arrive'];

/** Returns the rows for the chart. Cases with a low rate are omitted, because they mainly measure wake-ups. */
function chartRows(rows: readonly Row[]): Row[] {
  return byCase(rows)
    .filter(([first]) => !CASES_NOT_IN_CHART.includes(first?.case ?? ''))
    .flat();
}

/** Writes the chart and the table to {@link FOLDER}, and the results in {@link PAGE}. */
export function writeResults(rows: readonly Row[], options: BenchOptions): void {
  const folder = join(repositoryRoot, FOLDER);
  const where = describeRun(options);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'chart.svg'), chart(chartRows(rows), where));
  writeFileSync(
    join(folder, 'table.md'),
    `# Benchmarks\n\n${where}.\nPrinted by \`npm run bench -- load --write\`; columns are explained in ` +
      `[docs/internals/benchmarks.md](../../../docs/internals/benchmarks.md).\n\n${markdownTable(rows)}\n`,
  );

  const part =
    `${BEGIN}\n![CPU time per decision](../../${FOLDER}/chart.svg)\n\n${where}. [All ` +
    `results](../../${FOLDER}/table.md).\n\n${shortTable(rows)}\n`;
  writePart(PAGE, BEGIN, END, part);
}
