import { writePart } from '../support/docs/write-part.js';
import type { BenchOptions } from './options.js';
import { machine, PAGE } from './write-results.js';

/** CPU microseconds per decision, server and Redis together, of two revisions in one load case. */
export interface Drift {
  readonly name: string;
  readonly base: number;
  readonly branch: number;
  /** branch / base */
  readonly ratio: number;
  /** The ratios of the base to itself, in the middle half of the rounds. */
  readonly same: readonly [number, number];
}

/** Whether the ratio is beyond what the base differs from itself. */
function verdict({ ratio, same }: Drift): '' | 'SLOWER' | 'faster' {
  if (ratio > Math.max(1, same[1])) return 'SLOWER';
  return ratio < Math.min(1, same[0]) ? 'faster' : '';
}

function between([least, greatest]: Drift['same']): string {
  return `${least.toFixed(2)}–${greatest.toFixed(2)}`;
}

/** A case as a line for a terminal. */
export function driftLine(drift: Drift): string {
  const { name, base, branch, ratio, same } = drift;
  const micros = (value: number) => value.toFixed(2).padStart(10);
  const figures = `${micros(base)} ${micros(branch)} µs ${ratio.toFixed(2).padStart(6)}`;
  return `${name.padEnd(64)} ${figures}  A/A ${between(same)}  ${verdict(drift)}`.trimEnd();
}

const BEGIN = '<!-- drift: printed by npm run bench:compare -- load --write -->';
const END = '<!-- drift end -->';

/** Writes the figures into docs/reference/cost.md; `base` is the commit that all is held against. */
export function writeDrifts(drifts: readonly Drift[], base: string, { rounds, seconds }: BenchOptions): void {
  const rows = drifts.map((drift) => {
    const { name, base: before, branch, ratio, same } = drift;
    const figures = [before.toFixed(2), branch.toFixed(2), ratio.toFixed(2), between(same), verdict(drift)];
    return `| ${[name, ...figures].join(' | ')} |`;
  });
  const part = [
    BEGIN,
    `${machine()}. Medians of ${rounds} rounds of ${seconds} s.`,
    '',
    `| case | ${base}, µs | this commit, µs | ratio | A/A | |`,
    '|---|--:|--:|--:|--:|---|',
    ...rows,
    '',
  ];
  writePart(PAGE, BEGIN, END, part.join('\n'));
}
