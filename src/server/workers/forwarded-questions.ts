import type { BucketFailure } from '../buckets/messages.js';
import type { AdminCaller } from '../http/admin-access.js';
import type { AdminAnswer } from '../http/admin-endpoint.js';
import { machineMicros } from './channel.js';
import type { Decider } from './forwarded-decisions.js';
import type { AdministeredByWorker } from './messages.js';

/** Most questions that workers have yet to answer: each may wait in the channel of one that hangs. */
export const MAX_FORWARDED_QUESTIONS = 64;
/**
 * A worker answers within seconds, however much is asked; one that hangs is not waited for any longer, and leaves alone
 * what it reads later than this. Milliseconds.
 */
export const LONGEST_QUESTION_MS = 15_000;

const UNKNOWN =
  'so it is not known whether anything was done: look with weir bucket show, and with weir bucket blocks';
const NOBODY = 'no worker process serves, so nothing was done: try again';
const TOO_MANY = 'too many questions at once, so nothing was done: try again';
const LOST = `the worker process that was asked has ended, ${UNKNOWN}`;
const TOO_LATE = `the worker process that was asked did not answer in time, ${UNKNOWN}`;

/** Told of a question that was given to a worker and never answered: `error` is what its asker is told. */
export type OnUnanswered = (question: unknown, caller: AdminCaller, error: string) => void;

interface Waiting {
  readonly worker: Decider;
  /** Answers that nothing more is known. */
  giveUp(error: string): void;
  readonly timer: NodeJS.Timeout;
  /** Undefined once the caller has an answer. */
  settle: ((answer: AdminAnswer) => void) | undefined;
}

/**
 * Questions of those who administer weir, which the primary process leaves to a worker, as it has no store. Each is
 * asked once: what changes something must not be done twice.
 */
export class ForwardedQuestions {
  readonly #onUnanswered: OnUnanswered;
  readonly #longestMs: number;
  /** Also those that nobody waits for any more. */
  readonly #owed = new Map<number, Waiting>();
  #lastId = 0;

  /** `longestMs`: for tests. */
  constructor(onUnanswered: OnUnanswered, longestMs = LONGEST_QUESTION_MS) {
    this.#onUnanswered = onUnanswered;
    this.#longestMs = longestMs;
  }

  /** Asks the first of `workers`: what it was told last, it knows best. Never rejects. */
  ask(workers: readonly Decider[], question: unknown, caller: AdminCaller): Promise<AdminAnswer> {
    const [worker] = workers;
    if (worker === undefined) return Promise.resolve(unavailable({ error: NOBODY }));
    if (this.#owed.size >= MAX_FORWARDED_QUESTIONS) return Promise.resolve(unavailable({ error: TOO_MANY }));
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const giveUp = (error: string): void => {
        if (waiting.settle === undefined) return;
        settle(waiting, unavailable({ error, maybe_done: true }));
        this.#onUnanswered(question, caller, error);
      };
      const timer = setTimeout(() => giveUp(TOO_LATE), this.#longestMs);
      const waiting: Waiting = { worker, timer, giveUp, settle: resolve };
      this.#owed.set(id, waiting);
      worker.send({ kind: 'administer', id, question, caller, sentMicros: machineMicros() });
    });
  }

  /** What a worker answered. */
  answered({ id, answer }: AdministeredByWorker): void {
    const waiting = this.#owed.get(id);
    if (waiting === undefined) return;
    this.#owed.delete(id);
    settle(waiting, answer);
  }

  /** Nothing more comes from this worker. */
  lost(worker: Decider): void {
    for (const [id, waiting] of [...this.#owed]) {
      if (waiting.worker !== worker) continue;
      this.#owed.delete(id);
      waiting.giveUp(LOST);
    }
  }
}

function settle(waiting: Waiting, answer: AdminAnswer): void {
  clearTimeout(waiting.timer);
  waiting.settle?.(answer);
  waiting.settle = undefined;
}

function unavailable(body: BucketFailure): AdminAnswer {
  return { status: 503, body };
}
