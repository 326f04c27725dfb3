import { tableLines } from '../../../src/cli/table.js';
import { writePart } from '../../support/docs/write-part.js';
import type { LatencySummary } from '../testbed/deadline-check.js';
import type { TopologyName } from '../topology/topology.js';
import type { Row } from './row.js';

/** Page of the manual with the tables of a recorded run, between the lines BEGIN and END. */
const PAGE = 'docs/reference/faults.md';
const BEGIN = '<!-- faults: printed by npm run chaos -- --record -->';
const END = '<!-- faults end -->';

/** Results of a run for the manual. */
export interface RecordedRun {
  readonly node: string;
  readonly seed: number;
  readonly minutes: number;
  readonly topologies: readonly {
    readonly name: TopologyName;
    readonly baseline: LatencySummary;
    readonly rows: readonly Row[];
  }[];
}

const NAMES: Readonly<Record<TopologyName, string>> = {
  single: 'one Redis',
  sentinel: 'three sentinels, a master, two replicas',
  cluster: 'a cluster of three masters, each with a replica',
  'stepping-clock': 'one Valkey whose clock steps',
};
const HEAD = [
  ...['fault', 'runs', 'effect', 'calls', 'late', 'by policy', 'undecided denials'],
  ...['excess tokens', 'lost tokens', 'recovery ms'],
];
const COLUMNS = HEAD.map((heading) => ({
  heading,
  side: heading === 'fault' || heading === 'effect' ? ('left' as const) : ('right' as const),
}));

const count = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 0 });

function cells(row: Row): string[] {
  return [
    row.fault,
    String(row.runs),
    `${count(row.effects)} ${row.effect}`,
    count(row.calls),
    count(row.late),
    count(row.byPolicy),
    count(row.undecidedDenials),
    count(row.excessTokens),
    count(row.lostTokens),
    count(row.recoveryMs),
  ];
}

function sorted(rows: readonly Row[]): Row[] {
  return [...rows].sort((one, other) => (one.fault < other.fault ? -1 : 1));
}

/** Formats the rows as a table for a terminal. */
export function textTable(rows: readonly Row[]): string {
  return tableLines(COLUMNS, sorted(rows).map(cells)).join('\n');
}

/** Writes the tables of a run to the manual. */
export function writeFaults({ node, seed, minutes, topologies }: RecordedRun): void {
  const tables = topologies.map(({ name, baseline, rows }) => {
    const { p50Ms, p99Ms, maxMs, calls } = baseline;
    const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
    return [
      `### With ${NAMES[name]}`,
      '',
      `Without a fault, the latency of ${count(calls)} answers is ${p50Ms.toFixed(2)} ms (p50), ` +
        `${p99Ms.toFixed(2)} ms (p99) and ${maxMs.toFixed(2)} ms (maximum).`,
      '',
      line(HEAD),
      `|${COLUMNS.map(({ side }) => (side === 'left' ? '---' : '---:')).join('|')}|`,
      ...sorted(rows).map((row) => line(cells(row))),
    ].join('\n');
  });
  const text = [
    `${BEGIN}\nRecorded on Node.js ${node} by \`npm run chaos -- --minutes ${minutes} --seed ${seed} --record\`.`,
    ...tables,
  ].join('\n\n');
  writePart(PAGE, BEGIN, END, `${text}\n`);
}
