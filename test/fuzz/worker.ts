// Runs cases in a separate thread, so that run.ts can detect a case that does not end.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { runEngineCase } from './engine-case.js';
import { type FuzzRecord, runHpackCase } from './hpack-case.js';
import { type FuzzFailure, type FuzzTask, PROGRESS } from './task.js';

/** Number of cases between two measurements of the heap. */
const HEAP_EVERY = 20_000;
/** Maximum growth of the heap after garbage collection. */
const HEAP_GROWTH_MEGABYTES = 32;

const task = workerData as FuzzTask;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapMegabytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1_048_576;
}

/** Returns the target of a seed, so that the seed alone identifies its case. */
function targetOf(seed: number): 'hpack' | 'engine' {
  if (task.target !== 'all') return task.target;
  return seed % 2 === 0 ? 'hpack' : 'engine';
}

function run(): FuzzFailure | undefined {
  const { progress } = task;
  let firstHeap = 0;
  for (let done = 0; done < task.cases; done++) {
    if (done % 64 === 0 && Date.now() >= task.untilMs) return undefined;
    const seed = (task.seed + done) >>> 0;
    const target = targetOf(seed);
    const record: FuzzRecord = { inputs: [] };
    progress[PROGRESS.seed] = seed;
    const failed = (error: string): FuzzFailure => ({
      target,
      seed,
      error,
      inputs: record.inputs.map((input) => input.toString('hex')),
    });
    try {
      const inputs = target === 'hpack' ? runHpackCase(seed, record) : runEngineCase(seed, record);
      (progress[PROGRESS.inputs] as number) += inputs;
      (progress[PROGRESS.cases] as number) += 1;
    } catch (error) {
      return failed(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    if ((done + 1) % HEAP_EVERY !== 0) continue;
    const heap = heapMegabytes();
    progress[PROGRESS.heapMegabytes] = heap;
    if (firstHeap === 0) firstHeap = heap;
    else if (heap > firstHeap + HEAP_GROWTH_MEGABYTES)
      return failed(`the heap grew from ${firstHeap.toFixed(1)} to ${heap.toFixed(1)} MB`);
  }
  return undefined;
}

parentPort?.postMessage(run());
