import type { ServerStream } from '../../h2/request-handler.js';

/**
 * What happens on a stream once its head was read, kept as {@link ServerStream.state}: the methods of RequestHandler
 * for a call of one kind in one state.
 */
export interface CallState {
  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void;
  onTrailers(stream: ServerStream): void;
  onDrained(stream: ServerStream): void;
  onReset(stream: ServerStream): void;
}

/** The call has its answer, though some of it may still wait for the caller: what the caller sends now is dropped. */
class FinishedCall implements CallState {
  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number): void {
    stream.consumed(end - start);
  }
  onTrailers(): void {}
  onDrained(): void {}
  onReset(): void {}
}

export const OVER: CallState = new FinishedCall();

/**
 * What a request's path and header fields lead to. One object serves all streams with that head, so it holds nothing of
 * a call.
 */
export interface CallTarget {
  /** A request with this head has come; `requestEnded`: and nothing else will. */
  begin(stream: ServerStream, requestEnded: boolean): void;
}
