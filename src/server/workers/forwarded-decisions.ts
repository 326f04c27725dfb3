import { MAX_TIMER_MS } from '../../limiter/clock.js';
import { Refusal } from '../../service/refusal.js';
import { machineMicros } from './channel.js';
import type { DecidedByWorker, ToWorker } from './messages.js';
import type { Pulse } from './pulse.js';

export interface ForwardingLimits {
  /** How long a decision may take whatever its caller says, milliseconds (REDIS_TIMEOUT). */
  readonly longestMs: number;
  /** Most decisions that workers have yet to answer: each is a message that may wait in their channels. */
  readonly maxInFlight?: number;
  /** A worker decides in time; this is for one that is too busy to, as far as the caller waits. Milliseconds. */
  readonly marginMs?: number;
}

const NOBODY = new Refusal('unavailable', 'no worker process serves');
const LOST = new Refusal('unavailable', 'the worker process that was asked has ended');
const TOO_MANY = new Refusal('unavailable', 'too many requests at once');
const TOO_LATE = new Refusal('unavailable', 'no answer in time');

/** Most decisions that workers have yet to answer. */
export const MAX_FORWARDED = 1000;
/** A decision is asked of another worker when the first one is silent or ends; then it is given up. */
const MOST_WORKERS = 2;
/** A worker that has not decided after this long is asked whether it is there; milliseconds. */
const ASKED_AFTER_MS = 100;
/**
 * After this long another is asked, if nothing was heard of the first one meanwhile, which leaves alone what it reads
 * later than this. Milliseconds.
 */
export const GIVEN_AWAY_MS = 500;

/** A worker process, as far as it is needed here. */
export interface Decider {
  readonly pulse: Pick<Pulse, 'ask' | 'heardSince'>;
  send(message: ToWorker): unknown;
}

/** What a worker is asked: an encoded request, how long its caller waits, what it came by, and with. */
export type ForwardedQuestion = readonly [
  message: Uint8Array,
  patienceMicros: number,
  connection?: unknown,
  headers?: Readonly<Record<string, string>> | undefined,
];

/** What somebody waits for. */
interface Call {
  workers(): readonly Decider[];
  readonly message: Uint8Array;
  /** When the caller waits no longer, by performance.now(). */
  readonly deadlineMs: number;
  readonly connection: number;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Who was asked, the last of whom is expected to answer. */
  readonly asked: Decider[];
  /** Undefined once the caller has its answer. */
  settle: ((result: Uint8Array | Refusal) => void) | undefined;
}

interface Waiting {
  readonly worker: Decider;
  readonly call: Call;
  timer: NodeJS.Timeout | undefined;
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
    this.#limits = { maxInFlight: MAX_FORWARDED, marginMs: 1000, ...limits };
  }

  /**
   * Asks the one of `workers` that owes fewest answers, of equals in turn; it takes what came by one `connection` in
   * turns with what came by others. When that one hangs or ends, another is asked in what is left of the time. Never
   * rejects.
   */
  ask(
    workers: () => readonly Decider[],
    ...[message, patienceMicros, connection, headers]: ForwardedQuestion
  ): Promise<Uint8Array | Refusal> {
    return new Promise((resolve) => {
      const call: Call = {
        workers,
        message,
        deadlineMs: performance.now() + patienceMicros / 1000,
        connection: this.#numberOf(connection),
        headers,
        asked: [],
        settle: resolve,
      };
      this.#give(call, NOBODY);
    });
  }

  /** What a worker answered. */
  answered({ id, result }: DecidedByWorker): void {
    const waiting = this.#owed.get(id);
    if (waiting === undefined) return;
    this.#forget(id, waiting);
    const { worker, call } = waiting;
    if (!('refused' in result)) settle(call, result.response);
    // One that has woken up does not speak for the other who is asked now.
    else if (call.asked.at(-1) === worker) settle(call, new Refusal(result.refused, result.message));
  }

  /** Nothing more comes from this worker. */
  lost(worker: Decider): void {
    for (const [id, waiting] of [...this.#owed]) {
      if (waiting.worker !== worker) continue;
      this.#forget(id, waiting);
      const { call } = waiting;
      if (call.settle !== undefined && call.asked.at(-1) === worker) this.#give(call, LOST);
    }
    this.#counts.delete(worker);
  }

  #forget(id: number, { worker, timer }: Waiting): void {
    clearTimeout(timer);
    this.#owed.delete(id);
    this.#counts.set(worker, (this.#counts.get(worker) ?? 1) - 1);
  }

  /** Asks one of the workers that were not asked yet; `otherwise` is the answer when there is none. */
  #give(call: Call, otherwise: Refusal): void {
    const id = ++this.#lastId;
    const able = call.asked.length < MOST_WORKERS ? call.workers() : [];
    const worker = this.#leastBusy(
      able.filter((one) => !call.asked.includes(one)),
      id,
    );
    if (worker === undefined) {
      settle(call, otherwise);
      return;
    }
    if (this.#owed.size >= this.#limits.maxInFlight) {
      settle(call, TOO_MANY);
      return;
    }
    const { longestMs, marginMs } = this.#limits;
    const sentMs = performance.now();
    const patienceMs = Math.max(call.deadlineMs - sentMs, 0);
    const waiting: Waiting = { worker, call, timer: undefined };
    call.asked.push(worker);
    this.#owed.set(id, waiting);
    this.#counts.set(worker, (this.#counts.get(worker) ?? 0) + 1);
    worker.send({
      kind: 'decide',
      id,
      message: call.message,
      patienceMicros: patienceMs * 1000,
      sentMicros: machineMicros(),
      connection: call.connection,
      headers: call.headers,
    });
    const untilMs = sentMs + Math.min(patienceMs, longestMs + marginMs, MAX_TIMER_MS);
    this.#follow(waiting, sentMs, untilMs);
  }

  /** Looks after a decision that a worker was asked for at `sentMs`; it is given up at `untilMs`. */
  #follow(waiting: Waiting, sentMs: number, untilMs: number): void {
    const { worker, call } = waiting;
    const at = (whenMs: number, then: () => void): void => {
      const isLast = whenMs >= untilMs;
      const delayMs = (isLast ? untilMs : whenMs) - performance.now();
      waiting.timer = setTimeout(isLast ? () => settle(call, TOO_LATE) : then, Math.max(delayMs, 0));
    };
    at(sentMs + ASKED_AFTER_MS, () => {
      worker.pulse.ask();
      at(sentMs + GIVEN_AWAY_MS, () => {
        if (worker.pulse.heardSince(sentMs)) at(untilMs, () => {});
        else this.#give(call, TOO_LATE);
      });
    });
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

function settle(call: Call, result: Uint8Array | Refusal): void {
  call.settle?.(result);
  call.settle = undefined;
}
