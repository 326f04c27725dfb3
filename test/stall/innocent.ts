import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { repositoryRoot } from '../support/process/tools.js';

export interface InnocentOrder {
  readonly port: number;
  readonly domain: string;
  /** Calls a second. */
  readonly rate: number;
  readonly connections: number;
}

/** Results of the innocent caller. */
export interface InnocentResult {
  readonly calls: number;
  readonly unanswered: number;
  /** Why its calls came to an end: a call that was not answered with OK, or a lost connection. */
  readonly failure: string | undefined;
  /** Waits for an answer, from when the call was due. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

/** One whose calls nobody may hold up, in a thread of its own. Close it. */
export class InnocentCaller {
  readonly #thread = new Worker(join(repositoryRoot, 'build/test/stall/innocent-thread.js'));
  #heard: (said: unknown) => void = () => {};
  #failed: (error: Error) => void = () => {};

  constructor() {
    this.#thread.on('message', (said: unknown) => this.#heard(said));
    this.#thread.on('error', (error) => this.#failed(error as Error));
  }

  /** Resolves when the calls have started. */
  async begin(order: InnocentOrder): Promise<void> {
    await this.#ask(order);
  }

  /** Stops sending; resolves when all calls are answered. */
  async end(): Promise<InnocentResult> {
    return (await this.#ask('end')) as InnocentResult;
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  #ask(order: InnocentOrder | 'end'): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#heard = resolve;
      this.#failed = reject;
      this.#thread.postMessage(order);
    });
  }
}
