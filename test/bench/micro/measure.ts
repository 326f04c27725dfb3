import { execFileSync } from 'node:child_process';

/** A case that prepares its data, and returns the function to measure. */
export type MicroCase = () => (call: number) => void;

/** A case that measures something other than the time of a call. */
export interface CustomCase {
  readonly measure: () => readonly Measurement[] | Promise<readonly Measurement[]>;
}

/** A line of the table. */
export interface Measurement {
  readonly name: string;
  /** The median of the rounds. */
  readonly value: number;
  /** The minimum of the rounds; undefined without rounds. */
  readonly min?: number;
  /** Unit of the values: `ns`, `us`, `ms`, `bytes`, `times` or empty. */
  readonly unit: string;
}

/** Whether to run for a short time, without exact results (`npm run bench -- micro --quick`). */
export const QUICK = process.env['BENCH_QUICK'] === '1';
const ROUNDS = QUICK ? 3 : 9;
const ROUND_MS = QUICK ? 10 : 150;
const WARM_UP_MS = QUICK ? 20 : 500;

function cpuNanos(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

/** Calls `run` for about `ms`. Returns the number of calls. */
function callFor(run: (call: number) => void, ms: number, first: number): number {
  const until = performance.now() + ms;
  let call = first;
  while (performance.now() < until) for (let i = 0; i < 1000; i++) run(call++);
  return call - first;
}

function measureCalls(name: string, make: MicroCase): Measurement {
  const run = make();
  let calls = callFor(run, WARM_UP_MS, 0);
  const nanos: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = cpuNanos();
    const count = callFor(run, ROUND_MS, calls);
    nanos.push((cpuNanos() - before) / count);
    calls += count;
  }
  return { name, value: median(nanos), min: Math.min(...nanos), unit: 'ns' };
}

/** Returns the median; the upper one of the two middle values if the number of values is even. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

/** Formats a line of the table. */
export function formatMeasurement({ name, value, min, unit }: Measurement): string {
  const digits = unit === 'ns' || unit === 'bytes' ? 0 : unit === 'us' || unit === 'times' ? 2 : 1;
  const text = (number: number) => number.toFixed(digits).padStart(9);
  return `${name.padEnd(52)} ${text(value)} ${min === undefined ? ' '.repeat(9) : text(min)} ${unit}`;
}

export const HEADING = `${'CPU time of a call'.padEnd(52)} ${'median'.padStart(9)} ${'min'.padStart(9)}`;

/**
 * Measures each case in a separate process, because V8 optimizes code for earlier cases, and prints the CPU time of a
 * call in nanoseconds: the median and the minimum of the rounds. The CPU time includes the system and the garbage
 * collector. Arguments select cases by parts of their names. To profile a case, run `node --expose-gc --cpu-prof <file>
 * --in-process <name>`.
 */
export function runCases(file: string, cases: Readonly<Record<string, MicroCase | CustomCase>>): void {
  // `npm run bench -- micro` reads lines of JSON.
  const asJson = process.env['BENCH_JSON'] === '1';
  const [first, ...rest] = process.argv.slice(2);
  if (first === '--in-process') {
    const name = rest.join(' ');
    const one = cases[name];
    if (one === undefined) throw new Error(`there is no case "${name}"`);
    void Promise.resolve(typeof one === 'function' ? [measureCalls(name, one)] : one.measure()).then(
      (measurements) => {
        for (const measurement of measurements)
          console.log(asJson ? JSON.stringify(measurement) : formatMeasurement(measurement));
      },
    );
    return;
  }
  const wanted = process.argv.slice(2);
  if (!asJson) console.log(HEADING);
  for (const name of Object.keys(cases)) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
    execFileSync(process.execPath, ['--expose-gc', file, '--in-process', name], { stdio: 'inherit' });
  }
}
