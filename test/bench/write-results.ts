import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { writePart } from '../support/docs/write-part.js';
import { repositoryRoot } from '../support/process/tools.js';
import { byCase, chart } from './chart.js';
import { growthChart } from './growth-chart.js';
import type { Row } from './load/measure-case.js';
import { markdownTable } from './load/table.js';
import type { Figure } from './micro/measure.js';
import type { BenchOptions } from './options.js';

const FOLDER = 'test/bench/results';
/** The page of the manual that shows the figures. */
export const PAGE = 'docs/reference/cost.md';
const BEGIN = '<!-- bench: printed by npm run bench -- load --write -->';
const END = '<!-- bench end -->';
/** What the manual's table shows; the whole one lies in {@link FOLDER}. */
const PAGE_COLUMNS = ['server µs', 'Redis µs', '/ empty', 'decisions/s', 'p50 ms', 'p99 ms'];

/** When and where: without it a figure says nothing. */
function circumstances({ rounds, seconds, many }: BenchOptions): string {
  return `${machine()}. Median of ${rounds} rounds of ${seconds} s, "many tenants" are ${many.toLocaleString('en')}`;
}

/** Day, commit, Node.js and processors of a measurement. */
export function machine(): string {
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

/** Writes the picture of match-growth below {@link FOLDER}, if its figures are there. */
export function writeGrowth(figures: readonly Figure[]): void {
  const points = figures.flatMap(({ point, value }) =>
    point === undefined ? [] : [{ ...point, micros: value }],
  );
  if (points.length === 0) return;
  const folder = join(repositoryRoot, FOLDER);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'match-growth.svg'), growthChart(points, machine()));
}

/** Columns of the manual's table out of the whole table. */
function shortTable(rows: readonly Row[]): string {
  const lines = markdownTable(rows)
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

const OFF_THE_CHART = ['one call in flight', 'half rate, 1,000 tenants', 'new tenants arrive'];

/** The chart shows where the processor is busy: waiting at a low rate costs a wake-up per call and says little. */
function chartRows(rows: readonly Row[]): Row[] {
  return byCase(rows)
    .filter(([first]) => !OFF_THE_CHART.includes(first?.case ?? ''))
    .flat();
}

/**
 * Writes chart and table below {@link FOLDER}, and the part of
 * docs/reference/cost.md between its markers, if it has them.
 */
export function writeResults(rows: readonly Row[], options: BenchOptions): void {
  const folder = join(repositoryRoot, FOLDER);
  const where = circumstances(options);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'chart.svg'), chart(chartRows(rows), where));
  writeFileSync(
    join(folder, 'table.md'),
    `# Benchmarks\n\n${where}.\nPrinted by \`npm run bench -- load --write\`; columns are explained in ` +
      `[docs/internals/benchmarks.md](../../../docs/internals/benchmarks.md).\n\n${markdownTable(rows)}\n`,
  );

  const part =
    `${BEGIN}\n![CPU time per decision](../../${FOLDER}/chart.svg)\n\n${where}. [All ` +
    `figures](../../${FOLDER}/table.md).\n\n${shortTable(rows)}\n`;
  writePart(PAGE, BEGIN, END, part);
}
