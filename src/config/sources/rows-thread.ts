import { Worker } from 'node:worker_threads';
import { assetPath } from '../../runtime/assets.js';
import { threadError } from '../../runtime/working-directory.js';
import type { PlanBytes } from '../read/read-domain.js';
import type { KnownRows, UpdateResult } from './redis-rows.js';

/** Path of the thread's script below build/. */
const SCRIPT = 'src/config/sources/read-rows.js';

/** The workerData of the thread. */
export interface RowsRequest {
  readonly address: string;
  readonly passwordFile: string;
  readonly known: KnownRows | undefined;
}

/** The message that asks the thread for an update. */
export interface RowsUpdate {
  /** See {@link RedisRows.update}. */
  readonly isOnlyServer: boolean;
}

/** The message with which the thread answers each message. */
export interface RowsAnswer {
  readonly result: UpdateResult;
  readonly known: KnownRows | undefined;
  /** The rows, in shared memory, if they have changed. */
  readonly bytes: PlanBytes | undefined;
}

/** Keeps the rows of a hash in Redis. Reads them in a thread, because a large hash would delay other callers. */
export class RowsThread {
  readonly #address: string;
  readonly #passwordFile: string;
  #thread: Worker | undefined;
  #known: KnownRows | undefined;
  #bytes: PlanBytes | undefined;

  /** `passwordFile`: a file with the password, which is read for each connection; '' for none. */
  constructor(address: string, passwordFile: string) {
    this.#address = address;
    this.#passwordFile = passwordFile;
  }

  /** The rows that were read last, as RedisRows has them. */
  get bytes(): PlanBytes | undefined {
    return this.#bytes;
  }

  /** Asks Redis once; see {@link RedisRows.update}. Only one update may run at a time. */
  async update(isOnlyServer: boolean): Promise<UpdateResult> {
    const thread = this.#thread ?? this.#start();
    // Waiting for rows must keep the process running; waiting for the next poll must not.
    thread.ref();
    try {
      const { result, known, bytes } = await answerOf(thread, { isOnlyServer });
      this.#known = known;
      this.#bytes = bytes ?? this.#bytes;
      return result;
    } catch (error) {
      // The next update starts another thread.
      this.close();
      const message = `the thread that reads them ended (${(error as Error).message})`;
      return { kind: 'failed', reason: 'transfer', message };
    } finally {
      thread.unref();
    }
  }

  /** Ends the thread. A running update then fails. */
  close(): void {
    void this.#thread?.terminate();
    this.#thread = undefined;
  }

  #start(): Worker {
    const workerData: RowsRequest = {
      address: this.#address,
      passwordFile: this.#passwordFile,
      known: this.#known,
    };
    const thread = new Worker(assetPath(SCRIPT), { name: 'rows of plans', workerData });
    // Without a listener, an error between two updates would end the process.
    thread.on('error', () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    this.#thread = thread;
    return thread;
  }
}

function answerOf(thread: Worker, update: RowsUpdate): Promise<RowsAnswer> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => settle(() => reject(threadError(error)));
    const onExit = (): void => settle(() => reject(new Error('it was stopped')));
    const onMessage = (answer: RowsAnswer): void => settle(() => resolve(answer));
    const settle = (end: () => void): void => {
      thread.off('message', onMessage).off('error', onError).off('exit', onExit);
      end();
    };
    thread.on('message', onMessage).on('error', onError).on('exit', onExit);
    thread.postMessage(update);
  });
}
