import { writePart } from '../support/docs/write-part.js';
import type { BenchOptions } from './options.js';
import { describeMachine, PAGE } from './write-results.js';

/** CPU microseconds per decision, of server and Redis together, of two revisions in a load case. */
export interface Drift {
  readonly name: string;
  readonly base: number;
  readonly branch: number;
  /** branch / base */
  readonly ratio: number;
  /** Range of the ratios between two runs of the base, in the middle half of the rounds. */
  readonly baseRatios: readonly [min: number, max: number];
}

/** Returns a mark if the ratio is outside the range of the base. */
function mark({ ratio, baseRatios: [min, max] }: Drift): '' | 'SLOWER' | 'faster' {
  if (ratio > Math.max(1, max)) return 'SLOWER';
  return ratio < Math.min(1, min) ? 'faster' : '';
}

function rangeText([min, max]: Drift['baseRatios']): string {
  return `${min.toFixed(2)}–${max.toFixed(2)}`;
}

/** Formats a case as a line for a terminal. */
export function driftLine(drift: Drift): string {
  const { name, base, branch, ratio, baseRatios } = drift;
  const micros = (value: number) => value.toFixed(2).padStart(10);
  const figures = `${micros(base)} ${micros(branch)} µs ${ratio.toFixed(2).padStart(6)}`;
  return `${name.padEnd(64)} ${figures}  A/A ${rangeText(baseRatios)}  ${mark(drift)}`.trimEnd();
}

const BEGIN = '<!-- drift: printed by npm run bench:compare -- load --write -->';
const END = '<!-- drift end -->';

/** Writes the results to docs/reference/cost.md. `base` is the commit that they are compared with. */
export function writeDrifts(drifts: readonly Drift[], base: string, { rounds, seconds }: BenchOptions): void {
  const rows = drifts.map((drift) => {
    const { name, base: baseMicros, branch, ratio, baseRatios } = drift;
    const numbers = [baseMicros, branch, ratio].map((value) => value.toFixed(2));
    return `| ${[name, ...numbers, rangeText(baseRatios), mark(drift)].join(' | ')} |`;
  });
  const part = [
    BEGIN,
    `${describeMachine()}. Medians of ${rounds} rounds of ${seconds} s.`,
    '',
    `| case | ${base}, µs | this commit, µs | ratio | A/A | |`,
    '|---|--:|--:|--:|--:|---|',
    ...rows,
    '',
  ];
  writePart(PAGE, BEGIN, END, part.join('\n'));
}
