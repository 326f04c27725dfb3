/** One figure of a micro benchmark, printed as a line of JSON; `npm run bench -- micro` makes the table. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

/** Rounds of each measurement; the figure is their median. */
const ROUNDS = 7;
/** CPU time of one round: long against the resolution of the clock and a garbage collection. */
const ROUND_MICROS = process.env['BENCH_QUICK'] === '1' ? 5_000 : 100_000;

/** Prints one figure. */
export function report(name: string, value: number, unit: string): void {
  const figure: Figure = { name, value, unit };
  process.stdout.write(`${JSON.stringify(figure)}\n`);
}

/** Whether a short look is wanted, at the price of exactness (`--quick`). */
export function isQuick(): boolean {
  return process.env['BENCH_QUICK'] === '1';
}

/**
 * Measures and prints the CPU time of one call, in nanoseconds: median of rounds, after as long a warm-up. `run(times)` does the
 * work `times` times in a loop of its own (a call per turn through here would be measured too) and returns something that
 * depends on the work, or V8 may leave it out. CPU time, so that other programs on the machine disturb little.
 */
export function measure(name: string, run: (times: number) => number): number {
  const nanos = nanosPerCall(run);
  report(name, nanos, 'ns');
  return nanos;
}

/** As {@link measure}, without the cost of `around`: the same loop without the call in question. Prints the difference. */
export function measureWithout(
  name: string,
  run: (times: number) => number,
  around: (times: number) => number,
): number {
  const nanos = nanosPerCall(run) - nanosPerCall(around);
  report(name, nanos, 'ns');
  return nanos;
}

let sink = 0;

function nanosPerCall(run: (times: number) => number): number {
  let times = 16;
  // Doubles until a round is long enough; this is the warm-up too.
  while (cpuOf(run, times) < ROUND_MICROS / 2) times *= 2;
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(cpuOf(run, times));
  if (Number.isNaN(sink)) throw new Error('a benchmark returned what is no number');
  return (median(rounds) * 1000) / times;
}

function cpuOf(run: (times: number) => number, times: number): number {
  const before = process.cpuUsage();
  sink += run(times);
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The middle one; of an even number the upper middle one. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
