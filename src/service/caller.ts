import type { RequestTrace } from './record/request-trace.js';
import type { Waiter } from './turn-queue.js';

/** Who asks, as far as a decision depends on it. */
export interface Caller {
  /** When the caller stops waiting, monotonic clock; Infinity if it never does. */
  readonly deadlineMicros: number;
  /** True once nobody waits for the answer any more. */
  cancelled(): boolean;
  /** Stands for the connection that the request came by. */
  readonly connection: unknown;
  /** How the log names the request; absent where no decisions are logged. */
  readonly requestName?: string;
  /** The trace that the request belongs to; absent where nobody asks for it. */
  readonly trace?: RequestTrace;
}

/** Stands for a caller that nothing is known of, and that waits as long as it takes. */
export const CALLER_WITHOUT_DEADLINE: Caller = {
  deadlineMicros: Number.POSITIVE_INFINITY,
  cancelled: () => false,
  connection: undefined,
};

/** The part of the time a caller has left that a request may work, and may wait for its turns. */
export const WORK_SHARE = 0.25;
/** The most that it may work, CPU microseconds. */
export const MAX_WORK_MICROS = 5000;
/** Steps (MatchWork) of a microsecond. */
export const STEPS_PER_MICRO = 200;
/**
 * The least that it waits, if the caller has so long: with less, a busy turn of the event loop would deny what is only
 * a little costly.
 */
export const MIN_WAIT_MICROS = 5000;
const MIN_WAIT_SHARE = 0.6;
/** How long requests wait whose callers wait for ever. */
export const WAIT_WITHOUT_DEADLINE_MICROS = 1_000_000;

/** Steps that matching a request may take whose caller waits for another `leftMicros`. */
export function maxStepsFor(leftMicros: number): number {
  return Math.max(0, Math.min(MAX_WORK_MICROS, leftMicros * WORK_SHARE)) * STEPS_PER_MICRO;
}

function waitFor(leftMicros: number): number {
  if (leftMicros === Number.POSITIVE_INFINITY) return WAIT_WITHOUT_DEADLINE_MICROS;
  return Math.max(leftMicros * WORK_SHARE, Math.min(MIN_WAIT_MICROS, leftMicros * MIN_WAIT_SHARE));
}

/** How `caller` waits in the queue from `nowMicros` on, with so many bytes. */
export function waiterOf(caller: Caller, nowMicros: number, bytes: number): Waiter {
  return {
    connection: caller.connection,
    cancelled: () => caller.cancelled(),
    deadlineMicros: nowMicros + waitFor(caller.deadlineMicros - nowMicros),
    bytes,
  };
}

/** The share of the time left that is kept for the reply: one that arrives at the deadline is too late. */
const REPLY_SHARE = 0.1;
const MAX_REPLY_MICROS = 50_000;
/** Timers fire a millisecond or two late, and Envoy's default timeout is only 20 ms. */
const MIN_REPLY_MICROS = 5000;
const MIN_REPLY_SHARE = 0.4;

/** Microseconds before a caller's deadline, which is `leftMicros` away, at which the store must have answered. */
export function replyMarginMicros(leftMicros: number): number {
  const min = Math.min(MIN_REPLY_MICROS, leftMicros * MIN_REPLY_SHARE);
  return Math.min(Math.max(leftMicros * REPLY_SHARE, min), MAX_REPLY_MICROS);
}
