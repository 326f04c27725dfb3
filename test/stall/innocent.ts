import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { closeLater } from '../support/process/close-later.js';
import { repositoryRoot } from '../support/process/tools.js';

export interface InnocentOrder {
  readonly port: number;
  readonly domain: string;
  /** Calls per second. */
  readonly rate: number;
  readonly connections: number;
}

/** Results of the innocent caller. */
export interface InnocentResult {
  readonly calls: number;
  readonly unanswered: number;
  /** Reason why the caller stopped: a call that was not answered with OK, or a lost connection. */
  readonly failure: string | undefined;
  /** Latency percentiles, measured from the time at which a call was due. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly longestMs: number;
}

/** A caller, in a separate thread, whose calls no attack may delay. */
export class InnocentCaller {
  readonly #thread = new Worker(join(repositoryRoot, 'build/test/stall/innocent-thread.js'));
  #onReply: (reply: unknown) => void = () => {};
  #onError: (error: Error) => void = () => {};

  constructor() {
    closeLater(this.#thread, (thread) => thread.terminate());
    this.#thread.on('message', (reply: unknown) => this.#onReply(reply));
    this.#thread.on('error', (error) => this.#onError(error as Error));
  }

  /** Resolves when the calls have started. */
  async begin(order: InnocentOrder): Promise<void> {
    await this.#send(order);
  }

  /** Stops sending. Resolves when all calls are answered. */
  async end(): Promise<InnocentResult> {
    return (await this.#send('end')) as InnocentResult;
  }

  #send(order: InnocentOrder | 'end'): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#onReply = resolve;
      this.#onError = reject;
      this.#thread.postMessage(order);
    });
  }
}
