import type { Worker } from 'node:worker_threads';
import { threadError } from '../../working-directory.js';

/** Resolves with the message of a thread. Rejects if the thread `does` not end its work: `loads policies`. */
export function messageOf<Message>(thread: Worker, does: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', (error) => reject(threadError(error)));
    thread.once('exit', (code) => reject(new Error(`the thread that ${does} exited (exit code ${code})`)));
  });
}
