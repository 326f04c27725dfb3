import { constants, setPriority } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { threadError } from '../../runtime/working-directory.js';

/** Resolves with the message of a thread. Rejects if the thread `does` not end its work: `loads policies`. */
export function messageOf<Message>(thread: Worker, does: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', (error) => reject(threadError(error)));
    thread.once('exit', (code) => reject(new Error(`the thread that ${does} exited (exit code ${code})`)));
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
