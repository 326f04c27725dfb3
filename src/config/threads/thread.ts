import { constants, setPriority } from 'node:os';
import { type Transferable, Worker } from 'node:worker_threads';
import { assetPath } from '../../runtime/assets.js';
import { threadError } from '../../runtime/working-directory.js';

/** What a thread does, as in "the thread that loads policies"; see thread-tasks.ts. */
export type ThreadTask =
  | 'loads policies'
  | 'loads an update'
  | 'compares policies'
  | 'renders policies'
  | 'reads rows';

/** The workerData of a thread. */
export interface ThreadInput {
  readonly task: ThreadTask;
  /** Plain data for the task. */
  readonly data: unknown;
}

/** Starts a thread for a task. `data` is plain data, from which the objects in `transferList` are moved. */
export function startThread(
  task: ThreadTask,
  data: unknown,
  transferList: readonly Transferable[] = [],
): Worker {
  const input: ThreadInput = { task, data };
  return new Worker(assetPath('src/config/threads/thread-tasks.js'), {
    name: task,
    workerData: input,
    transferList: [...transferList],
  });
}

/** Resolves with the message of a thread. Rejects if the thread does not end its task. */
export function messageOf<Message>(thread: Worker, task: ThreadTask): Promise<Message> {
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', (error) => reject(threadError(error)));
    thread.once('exit', (code) => reject(new Error(`the thread that ${task} exited (exit code ${code})`)));
  });
}

/**
 * Lowers the priority of the thread, so that decisions run first. Call it first in the thread. On Linux, the priority
 * belongs to the thread (setpriority(2), "C library/kernel differences"). Other systems would change the whole process,
 * so nothing is done there. On two cores, this halves the delay of a busy server (bench: policy-load).
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}
