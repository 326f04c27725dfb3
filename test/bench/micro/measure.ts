import { execFileSync } from 'node:child_process';

/** One thing to measure: makes what it needs, and returns what is called again and again. */
export type MicroCase = () => (call: number) => void;

/** Something else than the time of a call, printed with its own unit. */
export interface FiguresCase {
  readonly figures: () => readonly Figure[] | Promise<readonly Figure[]>;
}

/** One line of the table. */
export interface Figure {
  readonly name: string;
  /** The median round. */
  readonly value: number;
  /** The least round, where there are rounds. */
  readonly least?: number;
  readonly unit: string;
  /** Where it belongs in the picture of match-growth. */
  readonly point?: GrowthPoint;
}

/** What was matched, by how many rules, in a value of how many bytes. */
export interface GrowthPoint {
  readonly matcher: string;
  readonly rules: number;
  readonly bytes: number;
}

/** A short look at the price of exactness (`npm run bench -- micro --quick`). */
export const QUICK = process.env['BENCH_QUICK'] === '1';
const ROUNDS = QUICK ? 3 : 9;
const ROUND_MS = QUICK ? 10 : 150;
const WARM_UP_MS = QUICK ? 20 : 500;

function cpuNanos(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

/** Calls for about `ms`; returns how many calls that were. */
function callFor(run: (call: number) => void, ms: number, first: number): number {
  const until = performance.now() + ms;
  let call = first;
  while (performance.now() < until) for (let i = 0; i < 1000; i++) run(call++);
  return call - first;
}

function measure(name: string, make: MicroCase): Figure {
  const run = make();
  let calls = callFor(run, WARM_UP_MS, 0);
  const nanos: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = cpuNanos();
    const count = callFor(run, ROUND_MS, calls);
    nanos.push((cpuNanos() - before) / count);
    calls += count;
  }
  return { name, value: median(nanos), least: Math.min(...nanos), unit: 'ns' };
}

/** The middle one; of an even number the upper middle one. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

/** Formats a line of the table. */
export function formatFigure({ name, value, least, unit }: Figure): string {
  const digits = unit === 'ns' || unit === 'bytes' ? 0 : unit === 'us' || unit === 'times' ? 2 : 1;
  const text = (number: number) => number.toFixed(digits).padStart(9);
  return `${name.padEnd(52)} ${text(value)} ${least === undefined ? ' '.repeat(9) : text(least)} ${unit}`;
}

export const FIGURE_HEADING = `${'CPU time of a call'.padEnd(52)} ${'median'.padStart(9)} ${'least'.padStart(9)}`;

/**
 * Measures each case in a process of its own, so that none runs code that another one has shaped, and prints the CPU
 * time of a call in nanoseconds (user and system, garbage collection included): the median round and the least.
 * Arguments choose the cases whose names hold one of them. For a profile run one case with `node --expose-gc --cpu-prof
 * <file> --in-process <name>`.
 */
export function runCases(file: string, cases: Readonly<Record<string, MicroCase | FiguresCase>>): void {
  // `npm run bench -- micro` reads lines of JSON.
  const asJson = process.env['BENCH_JSON'] === '1';
  const [first, ...rest] = process.argv.slice(2);
  if (first === '--in-process') {
    const name = rest.join(' ');
    const one = cases[name];
    if (one === undefined) throw new Error(`no case is called "${name}"`);
    void Promise.resolve(typeof one === 'function' ? [measure(name, one)] : one.figures()).then((figures) => {
      for (const figure of figures) console.log(asJson ? JSON.stringify(figure) : formatFigure(figure));
    });
    return;
  }
  const wanted = process.argv.slice(2);
  if (!asJson) console.log(FIGURE_HEADING);
  for (const name of Object.keys(cases)) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
    execFileSync(process.execPath, ['--expose-gc', file, '--in-process', name], { stdio: 'inherit' });
  }
}
