import { FinishedCall } from './call-state.js';

/**
 * Number of answered calls that a connection remembers. Only resets that cross the response in transit matter: callers
 * do not reset a call whose response they have read.
 */
export const MAX_ANSWERED_CALLS = 256;

/** A call with `onReset` whose response was passed to its stream, which may still wait for flow control windows. */
class AnsweredCall extends FinishedCall {
  readonly streamId: number;
  #onReset: (() => void) | undefined;

  constructor(streamId: number, onReset: () => void) {
    super();
    this.streamId = streamId;
    this.#onReset = onReset;
  }

  override onStreamReset(): void {
    const onReset = this.#onReset;
    this.#onReset = undefined;
    onReset?.();
  }
}

/** The latest calls of a connection that have `onReset` and were answered. The oldest are forgotten first. */
export class AnsweredCalls {
  /** A ring. */
  readonly #calls: AnsweredCall[] = [];
  #next = 0;

  /** Returns the state of the stream from now on. */
  add(streamId: number, onReset: () => void): FinishedCall {
    const call = new AnsweredCall(streamId, onReset);
    this.#calls[this.#next] = call;
    this.#next = (this.#next + 1) % MAX_ANSWERED_CALLS;
    return call;
  }

  /** The caller has reset a stream that is closed. */
  reset(streamId: number): void {
    for (const call of this.#calls) if (call.streamId === streamId) call.onStreamReset();
  }
}
