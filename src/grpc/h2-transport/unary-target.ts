import type { ServerStream } from '../../h2/request-handler.js';
import { GrpcError, STATUS, type UnaryHandler } from '../grpc-server.js';
import type { CallContext } from './call-context.js';
import { type CallState, type CallTarget, FINISHED_CALL } from './call-state.js';
import type { GrpcHead } from './grpc-head.js';
import { PREFIX_BYTES } from './message-reader.js';
import { type ResponseFields, sendError, TRAILERS_OK } from './responses.js';
import { UnaryCall, type UnaryCallTarget } from './unary-call.js';

/** Reused for each response, because the engine copies it. */
const PREFIX = Buffer.alloc(PREFIX_BYTES);

/**
 * Unary calls with one head. It also acts as their {@link CallState} until request data arrives, so that a call with an
 * immediate response, and a message in one chunk, allocates only one {@link UnaryCall}.
 */
export class UnaryTarget implements CallTarget, CallState, UnaryCallTarget {
  readonly path: string;
  readonly handler: UnaryHandler;
  readonly context: CallContext;
  readonly timeoutMicros: number;
  readonly encoding: string;
  readonly #headers: ResponseFields;
  readonly #waiting: WaitingStreams;

  constructor(
    path: string,
    handler: UnaryHandler,
    head: GrpcHead,
    context: CallContext,
    waiting: WaitingStreams,
  ) {
    this.path = path;
    this.handler = handler;
    this.context = context;
    this.timeoutMicros = head.timeoutMicros;
    this.encoding = head.encoding;
    this.#headers = head.responseHeaders;
    this.#waiting = waiting;
  }

  begin(stream: ServerStream, requestEnded: boolean): void {
    if (requestEnded) {
      stream.state = FINISHED_CALL;
      this.sendError(stream, new GrpcError(STATUS.UNIMPLEMENTED, this.noMessage()));
      return;
    }
    stream.state = this;
    this.#waiting.add(stream);
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    if (endStream && isPlainMessage(chunk, start, end, this.context.maxMessageBytes)) {
      // The message is read in place. It is valid, and the handler may use it, only while this method runs.
      new UnaryCall(stream, this).run(chunk.subarray(start + PREFIX_BYTES, end));
      // The engine itself consumes the rest of a call that has ended.
      stream.consumed(end - start);
      return;
    }
    this.startGathering(stream).onData(stream, chunk, start, end, endStream);
  }

  onTrailers(stream: ServerStream): void {
    stream.state = FINISHED_CALL;
    this.sendError(stream, new GrpcError(STATUS.UNIMPLEMENTED, this.noMessage()));
  }

  onDrained(): void {}

  onReset(stream: ServerStream): void {
    stream.state = FINISHED_CALL;
  }

  /** The request takes longer, so it gets its own state and deadline. */
  startGathering(stream: ServerStream): UnaryCall {
    const call = new UnaryCall(stream, this);
    call.awaitRequest();
    return call;
  }

  sendMessage(stream: ServerStream, message: Uint8Array): void {
    const length = message.length;
    PREFIX[1] = length >>> 24;
    PREFIX[2] = length >>> 16;
    PREFIX[3] = length >>> 8;
    PREFIX[4] = length;
    stream.sendResponse(this.#headers, PREFIX, message, TRAILERS_OK);
  }

  sendError(stream: ServerStream, error: GrpcError): void {
    sendError(stream, this.#headers, error);
  }

  noMessage(): string {
    return `Received no request message for unary method ${this.path}`;
  }
}

/** Returns whether `chunk[start, end)` is exactly one uncompressed message. */
function isPlainMessage(chunk: Buffer, start: number, end: number, maxBytes: number): boolean {
  const length = end - start - PREFIX_BYTES;
  return (
    length >= 0 &&
    length <= maxBytes &&
    chunk[start] === 0 &&
    (chunk[start + 1] as number) * 0x1000000 +
      (((chunk[start + 2] as number) << 16) |
        ((chunk[start + 3] as number) << 8) |
        (chunk[start + 4] as number)) ===
      length
  );
}

/**
 * Streams whose head arrived in this turn of the event loop. Those without further data at the end of the turn get a
 * deadline. Most have ended by then and do not need one.
 */
export class WaitingStreams {
  #streams: ServerStream[] = [];

  add(stream: ServerStream): void {
    if (this.#streams.length === 0) setImmediate(this.#endOfTurn);
    this.#streams.push(stream);
  }

  readonly #endOfTurn = (): void => {
    const streams = this.#streams;
    this.#streams = [];
    for (const stream of streams) {
      const state = stream.state;
      if (state instanceof UnaryTarget) state.startGathering(stream);
    }
  };
}
