import { type BucketFailure, changesSomething } from '../buckets/messages.js';
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

/** A question that only reads goes to another worker as well when one is not heard of for so long; milliseconds. */
const UNHEARD_MS = 500;

interface QuestionTimes {
  readonly longestMs: number;
  readonly unheardMs: number;
}

const UNKNOWN =
  'so it is not known whether anything was done: look with weir bucket show, and with weir bucket blocks';
const NOT_ASKED = 'so the question could not be asked: try again';
const TOO_MANY = 'too many questions at once';
const NOBODY = 'no worker process serves';
const LOST = 'the worker process that was asked has ended';
const TOO_LATE = 'the worker process that was asked did not answer in time';
const SILENT = 'no worker process answers';

/** Told of a question that was given to a worker and never answered: `error` is what its asker is told. */
export type OnUnanswered = (question: unknown, caller: AdminCaller, error: string) => void;

/** A question that somebody waits for. */
interface Call {
  workers(): readonly Decider[];
  readonly question: unknown;
  readonly caller: AdminCaller;
  /** Whether it changes nothing, so that it may be asked of several workers. */
  readonly reads: boolean;
  /** Who was asked, the last of whom is expected to answer. */
  readonly asked: Decider[];
  readonly untilMs: number;
  timer: NodeJS.Timeout | undefined;
  /** Undefined once the caller has an answer. */
  settle: ((answer: AdminAnswer) => void) | undefined;
}

interface Waiting {
  readonly worker: Decider;
  readonly call: Call;
}

/**
 * Questions of those who administer weir, which the primary process leaves to a worker, as it has no store. One that
 * changes something is asked once, as it must not be done twice; one that only reads is asked of another worker when
 * the first one ends or hangs.
 */
export class ForwardedQuestions {
  readonly #onUnanswered: OnUnanswered;
  readonly #times: QuestionTimes;
  /** Also those that nobody waits for any more. */
  readonly #owed = new Map<number, Waiting>();
  #lastId = 0;

  /** `times`: for tests. */
  constructor(onUnanswered: OnUnanswered, times: Partial<QuestionTimes> = {}) {
    this.#onUnanswered = onUnanswered;
    this.#times = { longestMs: LONGEST_QUESTION_MS, unheardMs: UNHEARD_MS, ...times };
  }

  /** Asks the first of `workers`: what it was told last, it knows best. Never rejects. */
  ask(workers: () => readonly Decider[], question: unknown, caller: AdminCaller): Promise<AdminAnswer> {
    return new Promise((resolve) => {
      const call: Call = {
        workers,
        question,
        caller,
        reads: onlyReads(question),
        asked: [],
        untilMs: performance.now() + this.#times.longestMs,
        timer: undefined,
        settle: resolve,
      };
      this.#give(call, NOBODY);
    });
  }

  /** What a worker answered. */
  answered({ id, answer }: AdministeredByWorker): void {
    const waiting = this.#owed.get(id);
    if (waiting === undefined) return;
    this.#owed.delete(id);
    settle(waiting.call, answer);
  }

  /** Nothing more comes from this worker. */
  lost(worker: Decider): void {
    for (const [id, { worker: asked, call }] of [...this.#owed]) {
      if (asked !== worker) continue;
      this.#owed.delete(id);
      if (call.settle === undefined || call.asked.at(-1) !== worker) continue;
      if (call.reads) this.#give(call, LOST);
      else this.#giveUp(call, LOST);
    }
  }

  /**
   * Asks the first worker that was not asked yet. Where there is none, one that was asked and may still answer is
   * waited for; `otherwise` is why there is no answer where there is none of these either.
   */
  #give(call: Call, otherwise: string): void {
    const able = call.workers();
    const worker = able.find((one) => !call.asked.includes(one));
    const [awaited] = able;
    if (worker === undefined && awaited !== undefined) {
      this.#follow(call, awaited);
      return;
    }
    if (worker === undefined || this.#owed.size >= MAX_FORWARDED_QUESTIONS) {
      this.#giveUp(call, worker === undefined ? otherwise : TOO_MANY);
      return;
    }
    const id = ++this.#lastId;
    call.asked.push(worker);
    this.#owed.set(id, { worker, call });
    const { question, caller } = call;
    worker.send({ kind: 'administer', id, question, caller, sentMicros: machineMicros() });
    this.#follow(call, worker);
  }

  /** Looks after a question that a worker was asked, again and again while the worker is heard of. */
  #follow(call: Call, worker: Decider): void {
    clearTimeout(call.timer);
    const { unheardMs } = this.#times;
    const sinceMs = performance.now();
    const leftMs = Math.max(0, call.untilMs - sinceMs);
    const isLast = !call.reads || leftMs <= unheardMs;
    if (!isLast) worker.pulse.ask();
    call.timer = setTimeout(
      () => {
        if (isLast) this.#giveUp(call, TOO_LATE);
        else if (worker.pulse.heardSince(sinceMs)) this.#follow(call, worker);
        else this.#give(call, SILENT);
      },
      isLast ? leftMs : unheardMs,
    );
  }

  #giveUp(call: Call, why: string): void {
    if (call.settle === undefined) return;
    const { question, caller, reads, asked } = call;
    const isMaybeDone = !reads && asked.length > 0;
    const what = isMaybeDone ? UNKNOWN : reads ? NOT_ASKED : 'so nothing was done: try again';
    const error = `${why}, ${what}`;
    settle(call, unavailable({ error, ...(isMaybeDone && { maybe_done: true }) }));
    if (asked.length > 0) this.#onUnanswered(question, caller, error);
  }
}

/** Whether a question that nothing is known of yet changes nothing. */
function onlyReads(question: unknown): boolean {
  return !changesSomething(Object(question));
}

function settle(call: Call, answer: AdminAnswer): void {
  clearTimeout(call.timer);
  call.settle?.(answer);
  call.settle = undefined;
}

function unavailable(body: BucketFailure): AdminAnswer {
  return { status: 503, body };
}
