// `npm run fuzz -- --seconds 60` sends mutated frames and header blocks to the HTTP/2 engine. A failure prints the
// input as hex, and the seed that creates the same case: `npm run fuzz -- --seed <seed> --cases 1`.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { type FuzzFailure, type FuzzTarget, type FuzzTask, PROGRESS } from './task.js';

const PROGRESS_MS = 2000;
/** Time after which a case counts as hanging. A case takes microseconds, but the machine may be busy. */
const HANG_MS = 30_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    cases: { type: 'string' },
    seed: { type: 'string' },
    target: { type: 'string', default: 'all' },
  },
});

function numberOf(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^\d+$/.test(text)) throw new Error(`--${name} is not a number: ${text}`);
  return Number(text);
}

const seed = numberOf('seed', values.seed, Math.floor(Math.random() * 0xffff_ffff));
const cases = numberOf('cases', values.cases, Number.MAX_SAFE_INTEGER);
const seconds = numberOf('seconds', values.seconds, values.cases === undefined ? 60 : 1_000_000);
if (!['all', 'hpack', 'engine'].includes(values.target)) throw new Error('--target is all, hpack or engine');

const progress = new Float64Array(new SharedArrayBuffer(PROGRESS.length * Float64Array.BYTES_PER_ELEMENT));
const startedMs = Date.now();
const task: FuzzTask = {
  target: values.target as FuzzTarget,
  seed,
  cases,
  untilMs: startedMs + seconds * 1000,
  progress,
};

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function report(): void {
  const elapsed = ((Date.now() - startedMs) / 1000).toFixed(0);
  const [done, inputs, , heap] = progress as unknown as number[];
  say(`${elapsed} s: ${done} cases, ${inputs} frames and blocks, heap ${(heap as number).toFixed(1)} MB`);
}

say(`seed ${seed}`);
const worker = new Worker(join(__dirname, 'worker.js'), { workerData: task });
let casesBefore = -1;
let changedMs = Date.now();
const timer = setInterval(() => {
  report();
  const done = progress[PROGRESS.cases] as number;
  if (done !== casesBefore) changedMs = Date.now();
  casesBefore = done;
  if (Date.now() - changedMs < HANG_MS) return;
  say(`FAILED: seed ${progress[PROGRESS.seed]} (target ${values.target}) does not end`);
  process.exit(1);
}, PROGRESS_MS);

worker.on('message', (failure: FuzzFailure | undefined) => {
  clearInterval(timer);
  report();
  if (failure === undefined) return;
  process.exitCode = 1;
  say(`FAILED: ${failure.target}, seed ${failure.seed}: ${failure.error}`);
  for (const input of failure.inputs) say(`  ${input}`);
  say(`again: npm run fuzz -- --target ${failure.target} --seed ${failure.seed} --cases 1`);
});
worker.on('error', (error) => {
  clearInterval(timer);
  throw error;
});
