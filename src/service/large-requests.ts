import type { Clock } from '../limiter/clock.js';
import { type Caller, maxWaitMicros } from './caller.js';

/** Requests with more descriptors, or longer messages, are large: deciding one may take longer than 0.1 ms. */
export const LARGE_DESCRIPTORS = 32;
export const LARGE_MESSAGE_BYTES = 16 * 1024;

/** Time for which large requests are decided in one turn of the event loop. The last one may take longer. */
const TURN_MICROS = 1000;
/** Bounds of the queue. */
export const MAX_WAITING_REQUESTS = 1000;
export const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/**
 * The reason why a request gets no turn: its caller has canceled the call, it has waited for too long, or the queue is
 * full.
 */
export type NoTurn = 'cancelled' | 'late' | 'full';

interface WaitingRequest {
  readonly caller: Caller;
  readonly bytes: number;
  /** Monotonic time until which the request may wait. */
  readonly dueMicros: number;
  end(noTurn: NoTurn | undefined): void;
}

/**
 * First-in, first-out queue for the large requests of all callers. In each turn of the event loop, requests from this
 * queue are decided for {@link TURN_MICROS}. Envoy sends the requests of all its callers over a few connections, so
 * ordering the queue by connection would not protect anybody.
 */
export class LargeRequests {
  readonly #clock: Pick<Clock, 'monotonicMicros'>;
  /** A Set keeps the order of arrival. */
  readonly #waiting = new Set<WaitingRequest>();
  #bytes = 0;
  #isScheduled = false;

  constructor(clock: Pick<Clock, 'monotonicMicros'>) {
    this.#clock = clock;
  }

  /** Number of waiting requests. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Memory of the waiting requests, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Calls `decide` when it is the request's turn, or with the reason why the request gets no turn. A request of `bytes`
   * waits for at most {@link maxWaitMicros}, so that it still gets an answer before its deadline.
   */
  run<Result>(
    caller: Caller,
    bytes: number,
    decide: (noTurn: NoTurn | undefined) => Result | Promise<Result>,
  ): Result | Promise<Result> {
    if (this.#waiting.size >= MAX_WAITING_REQUESTS || this.#bytes + bytes > MAX_WAITING_BYTES) {
      return decide('full');
    }
    const nowMicros = this.#clock.monotonicMicros();
    const leftMicros = caller.deadlineMicros - nowMicros;
    // The rest of the message arrived so late that the transport may end the call at the end of this turn.
    if (leftMicros <= 0) return decide('late');
    const dueMicros = nowMicros + maxWaitMicros(leftMicros);
    return new Promise((resolve, reject) => {
      const end = (noTurn: NoTurn | undefined): void => {
        try {
          resolve(decide(noTurn));
        } catch (error) {
          reject(error);
        }
      };
      this.#waiting.add({ caller, bytes, dueMicros, end });
      this.#bytes += bytes;
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    const startMicros = this.#clock.monotonicMicros();
    const endMicros = startMicros + TURN_MICROS;
    // Answer all late requests first. After a stall, their deadlines have passed or are near, and answering them takes
    // less time than it took to read their messages.
    for (const request of this.#waiting) if (request.dueMicros <= startMicros) this.#end(request, 'late');
    let nowMicros = this.#clock.monotonicMicros();
    for (const request of this.#waiting) {
      if (nowMicros >= endMicros) break;
      this.#end(request, undefined);
      nowMicros = this.#clock.monotonicMicros();
    }
    if (this.#waiting.size > 0) this.#schedule();
  };

  #end(request: WaitingRequest, noTurn: NoTurn | undefined): void {
    this.#waiting.delete(request);
    this.#bytes -= request.bytes;
    request.end(request.caller.cancelled() ? 'cancelled' : noTurn);
  }
}
