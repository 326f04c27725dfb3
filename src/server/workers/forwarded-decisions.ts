import { MAX_TIMER_MS } from '../../limiter/clock.js';
import { Refusal } from '../../service/should-rate-limit.js';
import type { DecidedByWorker, ToWorker } from './messages.js';

export interface ForwardingLimits {
  /** How long a decision may take whatever its caller says, milliseconds (REDIS_TIMEOUT). */
  readonly longestMs: number;
  /** Most decisions under way: each is a message that workers have yet to read. */
  readonly maxInFlight?: number;
  /** A worker decides in time; this is for one that is too busy to. */
  readonly marginMs?: number;
}

const NOBODY = new Refusal('unavailable', 'no worker process serves');
const TOO_MANY = new Refusal('unavailable', 'too many requests at once');
const TOO_LATE = new Refusal('unavailable', 'no answer in time');

/** A worker process, as far as it is needed here. */
interface Decider {
  send(message: ToWorker): unknown;
}

interface Waiting {
  readonly worker: Decider;
  settle(result: Uint8Array | Refusal): void;
}

/** Decisions that the primary process, which has no store, leaves to its workers. */
export class ForwardedDecisions {
  readonly #limits: Required<ForwardingLimits>;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(limits: ForwardingLimits) {
    this.#limits = { maxInFlight: 1000, marginMs: 1000, ...limits };
  }

  /** Asks one of `workers`, in turn. Never rejects. */
  ask(
    workers: readonly Decider[],
    message: Uint8Array,
    patienceMicros: number,
  ): Promise<Uint8Array | Refusal> {
    const id = ++this.#lastId;
    const worker = workers[id % Math.max(workers.length, 1)];
    if (worker === undefined) return Promise.resolve(NOBODY);
    if (this.#waiting.size >= this.#limits.maxInFlight) return Promise.resolve(TOO_MANY);
    return new Promise((resolve) => {
      const patienceMs = Math.min(patienceMicros / 1000, this.#limits.longestMs) + this.#limits.marginMs;
      const timer = setTimeout(() => this.#settle(id, TOO_LATE), Math.min(patienceMs, MAX_TIMER_MS));
      this.#waiting.set(id, {
        worker,
        settle(result) {
          clearTimeout(timer);
          resolve(result);
        },
      });
      worker.send({ kind: 'decide', id, message, patienceMicros });
    });
  }

  /** What a worker answered. */
  answered({ id, result }: DecidedByWorker): void {
    this.#settle(id, 'refused' in result ? new Refusal(result.refused, result.message) : result.response);
  }

  /** Nothing more comes from this worker. */
  lost(worker: Decider): void {
    for (const [id, waiting] of this.#waiting) if (waiting.worker === worker) this.#settle(id, NOBODY);
  }

  #settle(id: number, result: Uint8Array | Refusal): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.settle(result);
  }
}
