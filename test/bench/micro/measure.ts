import { execFileSync } from 'node:child_process';

/** One thing to measure: makes what it needs, and returns what is called again and again. */
export type MicroCase = () => (call: number) => void;

const ROUNDS = 9;
const ROUND_MS = 150;
const WARM_UP_MS = 500;

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

function measure(name: string, make: MicroCase): void {
  const run = make();
  let calls = callFor(run, WARM_UP_MS, 0);
  const nanos: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = cpuNanos();
    const count = callFor(run, ROUND_MS, calls);
    nanos.push((cpuNanos() - before) / count);
    calls += count;
  }
  nanos.sort((a, b) => a - b);
  const [least = 0] = nanos;
  const median = nanos[Math.floor(ROUNDS / 2)] as number;
  console.log(`${name.padEnd(44)} ${median.toFixed(0).padStart(7)} ${least.toFixed(0).padStart(7)}`);
}

/**
 * Measures each case in a process of its own, so that none runs code that another one has shaped, and prints the CPU time of a call in
 * nanoseconds (user and system, garbage collection included): the median round and the least. Arguments choose the cases
 * whose names hold one of them. For a profile run one case with `node --cpu-prof <file> --in-process <name>`.
 */
export function runCases(file: string, cases: Readonly<Record<string, MicroCase>>): void {
  const [first, ...rest] = process.argv.slice(2);
  if (first === '--in-process') {
    const name = rest.join(' ');
    const make = cases[name];
    if (make === undefined) throw new Error(`no case is called "${name}"`);
    measure(name, make);
    return;
  }
  const wanted = process.argv.slice(2);
  console.log(`${'nanoseconds of CPU per call'.padEnd(44)} ${'median'.padStart(7)} ${'least'.padStart(7)}`);
  for (const name of Object.keys(cases)) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
    execFileSync(process.execPath, [file, '--in-process', name], { stdio: 'inherit' });
  }
}
