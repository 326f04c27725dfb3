import type { ResetListener } from '../runtime/signal.js';
import type { RequestTrace } from './record/request-trace.js';

/** The properties of a caller that affect a decision. */
export interface Caller {
  /** Monotonic time at which the caller stops waiting; Infinity if it never does. */
  readonly deadlineMicros: number;
  /**
   * Time at which the request arrived, on the clock of the transport. Requests that arrived together have the same
   * time. Absent if it is unknown.
   */
  readonly receivedMicros?: number | undefined;
  /** True once the caller no longer waits for the answer. */
  cancelled(): boolean;
  /** Identifies the connection that the request arrived on. */
  readonly connection: unknown;
  /** Name of the request in the logs; absent if decisions are not logged. */
  readonly requestName?: string | undefined;
  /** Trace that the request belongs to; absent if traces are off. */
  readonly trace?: RequestTrace | undefined;
  /**
   * Releases the holds of the request if the caller resets the call before or after the answer was sent. The service
   * sets it before it answers if the answer contains a token. Requests over HTTP, which the primary process may forward
   * to a worker, are never reset: their holds expire.
   */
  resetListener?: ResetListener | undefined;
}

/** An unknown caller without a deadline. All requests of such callers share this object. */
export const CALLER_WITHOUT_DEADLINE: Caller = {
  deadlineMicros: Number.POSITIVE_INFINITY,
  cancelled: () => false,
  connection: undefined,
  get resetListener(): undefined {
    return undefined;
  },
  set resetListener(_listener: ResetListener | undefined) {},
};

/** A caller with other properties than the transport's caller, which still gets {@link Caller.resetListener}. */
export class ForwardingCaller implements Caller {
  readonly deadlineMicros: number;
  readonly connection: unknown;
  readonly requestName: string | undefined;
  readonly trace: RequestTrace | undefined;
  readonly #original: Pick<Caller, 'cancelled' | 'resetListener'>;

  /** Copies `properties`, and forwards the rest to `original`. */
  constructor(
    original: Pick<Caller, 'cancelled' | 'resetListener'>,
    properties: Pick<Caller, 'deadlineMicros' | 'connection' | 'requestName' | 'trace'>,
  ) {
    this.#original = original;
    this.deadlineMicros = properties.deadlineMicros;
    this.connection = properties.connection;
    this.requestName = properties.requestName;
    this.trace = properties.trace;
  }

  cancelled(): boolean {
    return this.#original.cancelled();
  }

  get resetListener(): ResetListener | undefined {
    return this.#original.resetListener;
  }

  set resetListener(listener: ResetListener | undefined) {
    this.#original.resetListener = listener;
  }
}

/** Fraction of a caller's remaining time for which a large request may wait. */
const WAIT_SHARE = 0.25;
/**
 * Minimum wait, if the caller's deadline allows it. With less, one busy turn of the event loop would give up requests
 * that are only slightly large.
 */
const MIN_WAIT_MICROS = 5000;
const MIN_WAIT_SHARE = 0.6;
/** Maximum wait for callers without a deadline, in microseconds. */
const WAIT_WITHOUT_DEADLINE_MICROS = 1_000_000;

/** Returns how long a large request may wait for its turn if its deadline is `leftMicros` away, in microseconds. */
export function maxWaitMicros(leftMicros: number): number {
  if (leftMicros === Number.POSITIVE_INFINITY) return WAIT_WITHOUT_DEADLINE_MICROS;
  return Math.max(leftMicros * WAIT_SHARE, Math.min(MIN_WAIT_MICROS, leftMicros * MIN_WAIT_SHARE));
}

/** Fraction of the remaining time that is reserved for the reply: a reply that arrives at the deadline is too late. */
const REPLY_SHARE = 0.1;
const MAX_REPLY_MICROS = 50_000;
/** Minimum reserve, because timers fire one or two milliseconds late and Envoy's default timeout is only 20 ms. */
const MIN_REPLY_MICROS = 5000;
const MIN_REPLY_SHARE = 0.4;

/**
 * Returns how long before the caller's deadline, which is `leftMicros` away, the store must have answered, in
 * microseconds.
 */
export function replyMarginMicros(leftMicros: number): number {
  const min = Math.min(MIN_REPLY_MICROS, leftMicros * MIN_REPLY_SHARE);
  return Math.min(Math.max(leftMicros * REPLY_SHARE, min), MAX_REPLY_MICROS);
}
