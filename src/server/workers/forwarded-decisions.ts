import type { Worker } from 'node:cluster';
import { MAX_TIMER_MS } from '../../limiter/clock.js';
import { Refusal } from '../../service/should-rate-limit.js';
import type { DecidedByWorker, ToWorker } from './messages.js';

/** Most decisions under way: each is a message that workers have yet to read. */
const MAX_IN_FLIGHT = 1000;
/** A worker decides in time; this is for one that is too busy to. */
const MARGIN_MS = 1000;

const NOBODY = new Refusal('unavailable', 'no worker process serves');
const TOO_MANY = new Refusal('unavailable', 'too many requests at once');
const TOO_LATE = new Refusal('unavailable', 'no answer in time');

interface Waiting {
  readonly worker: Worker;
  settle(result: Uint8Array | Refusal): void;
}

/** Decisions that the primary process, which has no store, leaves to its workers. */
export class ForwardedDecisions {
  readonly #longestMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  /** `longestMs`: how long a decision may take whatever its caller says (REDIS_TIMEOUT). */
  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Asks one of `workers`, in turn. Never rejects. */
  ask(
    workers: readonly Worker[],
    message: Uint8Array,
    patienceMicros: number,
  ): Promise<Uint8Array | Refusal> {
    const id = ++this.#lastId;
    const worker = workers[id % Math.max(workers.length, 1)];
    if (worker === undefined) return Promise.resolve(NOBODY);
    if (this.#waiting.size >= MAX_IN_FLIGHT) return Promise.resolve(TOO_MANY);
    return new Promise((resolve) => {
      const patienceMs = Math.min(patienceMicros / 1000, this.#longestMs) + MARGIN_MS;
      const timer = setTimeout(() => this.#settle(id, TOO_LATE), Math.min(patienceMs, MAX_TIMER_MS));
      this.#waiting.set(id, {
        worker,
        settle(result) {
          clearTimeout(timer);
          resolve(result);
        },
      });
      worker.send({ kind: 'decide', id, message, patienceMicros } satisfies ToWorker);
    });
  }

  /** What a worker answered. */
  answered({ id, result }: DecidedByWorker): void {
    this.#settle(id, 'refused' in result ? new Refusal(result.refused, result.message) : result.response);
  }

  /** Nothing more comes from this worker. */
  lost(worker: Worker): void {
    for (const [id, waiting] of this.#waiting) if (waiting.worker === worker) this.#settle(id, NOBODY);
  }

  #settle(id: number, result: Uint8Array | Refusal): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.settle(result);
  }
}
