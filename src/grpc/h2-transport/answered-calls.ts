import type { ResetListener } from '../../runtime/reset-listener.js';
import { FinishedCall } from './call-state.js';

/**
 * Number of answered calls that a connection remembers. Only resets that cross the response in transit matter: callers
 * do not reset a call whose response they have read.
 */
export const MAX_ANSWERED_CALLS = 256;

/** A call with a listener whose response was passed to its stream, which may still wait for flow control windows. */
export class AnsweredCall extends FinishedCall {
  readonly streamId: number;
  /** Whether the response waits for flow control windows, so that the caller may still reset the stream itself. */
  isBlocked = false;
  #listener: ResetListener | undefined;

  constructor(streamId: number, listener: ResetListener) {
    super();
    this.streamId = streamId;
    this.#listener = listener;
  }

  override onStreamReset(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onReset();
  }

  /** Called when the connection no longer finds the call by its stream id. */
  forget(): void {
    if (this.isBlocked) return;
    this.#listener?.onForgotten();
    this.#listener = undefined;
  }
}

/** The latest calls of a connection that have a listener and were answered. The oldest are forgotten first. */
export class AnsweredCalls {
  /** A ring. */
  readonly #calls: AnsweredCall[] = [];
  #next = 0;

  /** Returns the state of the stream from now on. */
  add(streamId: number, listener: ResetListener): AnsweredCall {
    const call = new AnsweredCall(streamId, listener);
    this.#calls[this.#next]?.forget();
    this.#calls[this.#next] = call;
    this.#next = (this.#next + 1) % MAX_ANSWERED_CALLS;
    return call;
  }

  /** The caller has reset a stream that is closed. */
  reset(streamId: number): void {
    for (const call of this.#calls) if (call.streamId === streamId) call.onStreamReset();
  }
}
