import { MAX_TIMER_MS } from '../../limiter/clock.js';
import { Refusal } from '../../service/refusal.js';
import type { DecidedByWorker, ToWorker } from './messages.js';

export interface ForwardingLimits {
  /** How long a decision may take whatever its caller says, milliseconds (REDIS_TIMEOUT). */
  readonly longestMs: number;
  /** Most decisions that workers have yet to answer: each is a message that may wait in their channels. */
  readonly maxInFlight?: number;
  /** A worker decides in time; this is for one that is too busy to. */
  readonly marginMs?: number;
}

const NOBODY = new Refusal('unavailable', 'no worker process serves');
const LOST = new Refusal('unavailable', 'the worker process that was asked has ended');
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
  /**
   * What workers have yet to answer, also what nobody waits for any more: it still fills the channel of one that hangs.
   */
  readonly #owed = new Map<number, Waiting>();
  /** How many of them each worker owes. */
  readonly #counts = new Map<Decider, number>();
  #lastId = 0;
  readonly #connections = new WeakMap<object, number>();
  #lastConnection = 0;

  constructor(limits: ForwardingLimits) {
    this.#limits = { maxInFlight: 1000, marginMs: 1000, ...limits };
  }

  /**
   * Asks the one of `workers` that owes fewest answers, of equals in turn; it takes what came by one `connection` in
   * turns with what came by others. Never rejects.
   */
  ask(
    workers: readonly Decider[],
    message: Uint8Array,
    patienceMicros: number,
    connection?: unknown,
  ): Promise<Uint8Array | Refusal> {
    const id = ++this.#lastId;
    const worker = this.#leastBusy(workers, id);
    if (worker === undefined) return Promise.resolve(NOBODY);
    if (this.#owed.size >= this.#limits.maxInFlight) return Promise.resolve(TOO_MANY);
    return new Promise((resolve) => {
      const patienceMs = Math.min(patienceMicros / 1000, this.#limits.longestMs) + this.#limits.marginMs;
      const timer = setTimeout(() => resolve(TOO_LATE), Math.min(patienceMs, MAX_TIMER_MS));
      this.#owed.set(id, {
        worker,
        settle(result) {
          clearTimeout(timer);
          resolve(result);
        },
      });
      this.#counts.set(worker, (this.#counts.get(worker) ?? 0) + 1);
      worker.send({ kind: 'decide', id, message, patienceMicros, connection: this.#numberOf(connection) });
    });
  }

  /** What a worker answered. */
  answered({ id, result }: DecidedByWorker): void {
    const waiting = this.#owed.get(id);
    if (waiting === undefined) return;
    this.#owed.delete(id);
    this.#counts.set(waiting.worker, (this.#counts.get(waiting.worker) ?? 1) - 1);
    waiting.settle('refused' in result ? new Refusal(result.refused, result.message) : result.response);
  }

  /** Nothing more comes from this worker. */
  lost(worker: Decider): void {
    this.#counts.delete(worker);
    for (const [id, waiting] of this.#owed) {
      if (waiting.worker !== worker) continue;
      this.#owed.delete(id);
      waiting.settle(LOST);
    }
  }

  #numberOf(connection: unknown): number {
    if (typeof connection !== 'object' || connection === null) return 0;
    let number = this.#connections.get(connection);
    if (number === undefined) {
      number = ++this.#lastConnection;
      this.#connections.set(connection, number);
    }
    return number;
  }

  #leastBusy(workers: readonly Decider[], turn: number): Decider | undefined {
    let chosen: Decider | undefined;
    let fewest = Infinity;
    for (let at = 0; at < workers.length; at++) {
      const worker = workers[(turn + at) % workers.length] as Decider;
      const count = this.#counts.get(worker) ?? 0;
      if (count >= fewest) continue;
      chosen = worker;
      fewest = count;
    }
    return chosen;
  }
}
