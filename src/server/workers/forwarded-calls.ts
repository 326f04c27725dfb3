import type { AdminCaller } from '../../admin/admin-access.js';
import type { AdminAnswer } from '../../admin/admin-endpoint.js';
import { changesSomething } from '../../admin/buckets/messages.js';
import { Refusal } from '../../service/refusal.js';
import type { CallableWorker, CallClient, CallFailure } from './call-client.js';
import { CALL_BOUNDS, type Calls, READ_LATE } from './calls.js';

/** Told of a question that was given to a worker and never answered: `error` is what its asker is told. */
export type OnUnanswered = (question: unknown, caller: AdminCaller, error: string) => void;

/** What a worker is asked: an encoded request, how long its caller waits, what it came by, and with. */
export type DecideArguments = readonly [
  message: Uint8Array,
  timeoutMicros: number,
  connection?: unknown,
  headers?: Readonly<Record<string, string>> | undefined,
];

const NO_WORKER = 'no worker process serves';
const WORKER_ENDED = 'the worker process that was asked has ended';

const REFUSALS: Readonly<Record<CallFailure, Refusal>> = {
  no_worker: new Refusal('unavailable', NO_WORKER),
  lost: new Refusal('unavailable', WORKER_ENDED),
  too_many: new Refusal('unavailable', 'too many requests at once'),
  too_late: new Refusal('unavailable', 'no answer in time'),
  silent: new Refusal('unavailable', 'no answer in time'),
  read_late: new Refusal('unavailable', READ_LATE),
};

const UNANSWERED: Readonly<Record<CallFailure, string>> = {
  no_worker: NO_WORKER,
  lost: WORKER_ENDED,
  too_many: 'too many questions at once',
  too_late: 'the worker process that was asked did not answer in time',
  silent: 'no worker process answers',
  read_late: READ_LATE,
};

/** A decision is asked of another worker when the first one is silent or ends; then it is given up. */
const MAX_DECISION_WORKERS = 2;
/** A worker decides in time; this is for one that is too busy to, as far as the caller waits. Milliseconds. */
const MARGIN_MS = 1000;

/** Decisions that the primary process, which has no store, leaves to its workers. */
export class ForwardedDecisions {
  readonly #calls: CallClient;
  readonly #maxTimeoutMs: number;
  readonly #connections = new WeakMap<object, number>();
  #lastConnection = 0;

  /** `timeoutMs`: how long a decision may take whatever its caller says (REDIS_TIMEOUT). */
  constructor(calls: CallClient, timeoutMs: number, marginMs = MARGIN_MS) {
    this.#calls = calls;
    this.#maxTimeoutMs = timeoutMs + marginMs;
  }

  /**
   * Asks one of `workers`, which takes what came by one connection in turns with what came by others. When that one
   * hangs or ends, another is asked in what is left of the time. Never rejects.
   */
  async ask(
    workers: () => readonly CallableWorker[],
    ...[message, timeoutMicros, connection, headers]: DecideArguments
  ): Promise<Uint8Array | Refusal> {
    const deadlineMs = performance.now() + timeoutMicros / 1000;
    const number = this.#connectionNumber(connection);
    const decided = await this.#calls.forward('decide', {
      workers,
      ask: () => ({
        message,
        timeoutMicros: Math.max(deadlineMs - performance.now(), 0) * 1000,
        connection: number,
        headers,
      }),
      balances: true,
      maxWorkers: MAX_DECISION_WORKERS,
      waitsWhileAlive: false,
      timeoutMs: Math.min(timeoutMicros / 1000, this.#maxTimeoutMs),
      onlyFromLast: (answer) => 'refused' in answer,
    });
    if (typeof decided === 'string') return REFUSALS[decided];
    return 'refused' in decided ? new Refusal(decided.refused, decided.message) : decided.response;
  }

  #connectionNumber(connection: unknown): number {
    if (typeof connection !== 'object' || connection === null) return 0;
    let number = this.#connections.get(connection);
    if (number === undefined) {
      number = ++this.#lastConnection;
      this.#connections.set(connection, number);
    }
    return number;
  }
}

/**
 * Asks a worker what somebody who administers weir asks, as the primary process has no store: the first of `workers`,
 * as it knows best what it was told last. A question that changes something is asked once, as it must not be done
 * twice; one that only reads is asked of another worker when the first one ends or hangs. Never rejects.
 */
export async function forwardAdminCall(
  calls: CallClient,
  workers: () => readonly CallableWorker[],
  asked: Calls['administer']['ask'],
  onUnanswered: OnUnanswered,
  timeoutMs = CALL_BOUNDS.administer.maxDelayMs,
): Promise<AdminAnswer> {
  const { question, caller } = asked;
  const isReadOnly = !changesSomething(Object(question));
  const answer = await calls.forward('administer', {
    workers,
    ask: () => asked,
    balances: false,
    maxWorkers: isReadOnly ? Number.POSITIVE_INFINITY : 1,
    waitsWhileAlive: isReadOnly,
    timeoutMs,
  });
  if (typeof answer !== 'string') return answer;
  const wasSent = answer !== 'no_worker' && answer !== 'too_many';
  const error = `${UNANSWERED[answer]}, ${consequence(isReadOnly, wasSent)}`;
  if (wasSent) onUnanswered(question, caller, error);
  return { status: 503, body: { error, ...(!isReadOnly && wasSent && { maybe_done: true }) } };
}

function consequence(isReadOnly: boolean, wasSent: boolean): string {
  if (isReadOnly) return 'so the question could not be asked: try again';
  if (!wasSent) return 'so nothing was done: try again';
  return 'so it is not known whether anything was done: look with weir bucket show, and with weir bucket blocks';
}
