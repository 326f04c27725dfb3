import type { ServerStream } from '../../h2/request-handler.js';

/**
 * Handles the events of a stream after its head was read, stored as {@link ServerStream.state}: the methods of
 * RequestHandler for one kind of call in one state. Its `onReset` is {@link onStreamReset}, because a call also has
 * ServerCall.resetListener.
 */
export interface StreamHandler {
  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void;
  onTrailers(stream: ServerStream): void;
  onDrained(stream: ServerStream): void;
  onStreamReset(stream: ServerStream): void;
}

/**
 * State of a call that has sent its response, though the caller may not have read all of it. Further data from the
 * caller is dropped.
 */
export class FinishedCall implements StreamHandler {
  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number): void {
    stream.consumed(end - start);
  }
  onTrailers(): void {}
  onDrained(): void {}
  onStreamReset(): void {}
}

export const FINISHED_CALL: StreamHandler = new FinishedCall();

/**
 * The target of a request's path and header fields. All streams with the same head share one object, so it contains no
 * state of a call.
 */
export interface BoundMethod {
  /** Starts a call with this head. If `requestEnded`, the request has no body. */
  begin(stream: ServerStream, requestEnded: boolean): void;
}
