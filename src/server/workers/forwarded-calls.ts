import type { AdminCaller } from '../../admin/admin-access.js';
import type { AdminAnswer } from '../../admin/admin-endpoint.js';
import { changesSomething } from '../../admin/buckets/messages.js';
import type { RateLimitRequest, RateLimitResponse } from '../../codec/messages.js';
import { Refusal } from '../../service/refusal.js';
import type { CallableWorker, CallClient, CallFailure } from './call-client.js';
import { CALL_BOUNDS, type Calls, READ_LATE } from './calls.js';

/** Called if a worker got an operator's command and did not answer. `error` is the message to the operator. */
export type OnUnanswered = (question: unknown, caller: AdminCaller, error: string) => void;

/** Arguments of a decision: request, timeout, connection and headers. */
export type DecideArguments = readonly [
  request: RateLimitRequest,
  timeoutMicros: number,
  connection?: unknown,
  headers?: Readonly<Record<string, string>> | undefined,
];

const NO_WORKER = 'no worker process is serving';
const WORKER_ENDED = 'the worker process ended before it answered';

const REFUSALS: Readonly<Record<CallFailure, Refusal>> = {
  no_worker: new Refusal('unavailable', NO_WORKER),
  lost: new Refusal('unavailable', WORKER_ENDED),
  too_many: new Refusal('unavailable', 'too many requests at once'),
  too_late: new Refusal('unavailable', 'the worker process did not answer in time'),
  silent: new Refusal('unavailable', 'the worker process did not answer in time'),
  read_late: new Refusal('unavailable', READ_LATE),
};

const UNANSWERED: Readonly<Record<CallFailure, string>> = {
  no_worker: NO_WORKER,
  lost: WORKER_ENDED,
  too_many: 'too many requests at once',
  too_late: 'the worker process did not answer in time',
  silent: 'no worker process answers',
  read_late: READ_LATE,
};

/** Maximum number of workers that get a request. The second one gets it if the first does not answer or exits. */
const MAX_DECISION_WORKERS = 2;
/** Milliseconds on top of the store's timeout for a busy worker, as long as the caller waits. */
const MARGIN_MS = 1000;

/** Decisions that the primary process, which has no store, forwards to its workers. */
export class ForwardedDecisions {
  readonly #calls: CallClient;
  readonly #maxTimeoutMs: number;
  readonly #connections = new WeakMap<object, number>();
  #lastConnection = 0;

  /** @param timeoutMs maximum milliseconds of a decision, whatever timeout its caller has (REDIS_TIMEOUT) */
  constructor(calls: CallClient, timeoutMs: number, marginMs = MARGIN_MS) {
    this.#calls = calls;
    this.#maxTimeoutMs = timeoutMs + marginMs;
  }

  /**
   * Forwards a request to one of `workers`, which balances requests by their connections. If that worker hangs or
   * exits, another one gets the request for the remaining time. Never rejects.
   */
  async ask(
    workers: () => readonly CallableWorker[],
    ...[request, timeoutMicros, connection, headers]: DecideArguments
  ): Promise<RateLimitResponse | Refusal> {
    const deadlineMs = performance.now() + timeoutMicros / 1000;
    const number = this.#connectionNumber(connection);
    const decided = await this.#calls.forward('decide', {
      workers,
      ask: () => ({
        request,
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
 * Forwards an operator's command to the first of `workers`, which also got the previous ones and knows their results
 * best. A command that changes something is sent once, because it must not run twice. A read-only command is sent to
 * another worker if the first one exits or hangs. Never rejects.
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
  if (isReadOnly) return 'so the request failed; try again';
  if (!wasSent) return 'so nothing was changed; try again';
  return 'so the result is unknown; to see whether the command took effect, run weir bucket show';
}
