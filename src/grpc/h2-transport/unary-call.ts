import { ERROR_CODE } from '../../h2/failure.js';
import type { BodyWriter, ServerStream } from '../../h2/request-handler.js';
import { freeBuffer } from '../../runtime/free-buffer.js';
import type { ResetListener } from '../../runtime/signal.js';
import {
  GrpcError,
  type MessageEncoder,
  type ServerCall,
  STATUS,
  type UnaryHandler,
} from '../grpc-server.js';
import { type BoundMethod, FINISHED_CALL, type StreamHandler } from './bound-method.js';
import type { Expiring } from './deadline-queue.js';
import type { GrpcHead } from './grpc-head.js';
import type { GrpcServerState } from './grpc-server-state.js';
import { MessageReader, PREFIX_BYTES } from './message-reader.js';
import { type ResponseFields, sendError, TRAILERS_OK } from './responses.js';

const MICROS_PER_MS = 1000;
/**
 * Time after its deadline for which weir waits for the rest of a request, in milliseconds. The rest may have waited in
 * the socket, and Envoy lets a call without a decision pass by default.
 */
export const LATE_REQUEST_MS = 2000;

/**
 * Unary calls with one head. It also acts as their {@link StreamHandler} until request data arrives, so that a call
 * with an immediate response, and a message in one chunk, allocates only one {@link UnaryCall}. It is the {@link
 * BodyWriter} of its response as well, which is written before another response is sent.
 */
export class BoundUnaryMethod<Response = unknown> implements BoundMethod, StreamHandler, BodyWriter {
  readonly path: string;
  readonly handler: UnaryHandler<Response>;
  readonly encoder: MessageEncoder<Response>;
  readonly context: GrpcServerState;
  readonly timeoutMicros: number;
  /** `grpc-encoding` of the request. */
  readonly encoding: string;
  /** For the response that is being sent, see {@link BodyWriter}. */
  maxLength = 0;
  #response: Response | undefined;
  readonly #headers: ResponseFields;
  readonly #waiting: WaitingStreams;

  constructor(
    path: string,
    handler: UnaryHandler<Response>,
    encoder: MessageEncoder<Response>,
    head: GrpcHead,
    context: GrpcServerState,
    waiting: WaitingStreams,
  ) {
    this.path = path;
    this.handler = handler;
    this.encoder = encoder;
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
      new UnaryCall(stream, this).run(chunk, start + PREFIX_BYTES, end);
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

  onStreamReset(stream: ServerStream): void {
    stream.state = FINISHED_CALL;
  }

  /** The request takes longer, so it gets its own state and deadline. */
  startGathering(stream: ServerStream): UnaryCall<Response> {
    const call = new UnaryCall(stream, this);
    call.awaitRequest();
    return call;
  }

  sendMessage(stream: ServerStream, response: Response): void {
    this.#response = response;
    this.maxLength = PREFIX_BYTES + this.encoder.maxLength(response);
    stream.sendResponse(this.#headers, this, TRAILERS_OK);
    this.#response = undefined;
  }

  writeBefore(bytes: Uint8Array, end: number): number {
    const start = this.encoder.writeBefore(this.#response as Response, bytes, end);
    const length = end - start;
    bytes[start - 5] = 0;
    bytes[start - 4] = length >>> 24;
    bytes[start - 3] = length >>> 16;
    bytes[start - 2] = length >>> 8;
    bytes[start - 1] = length;
    return start - PREFIX_BYTES;
  }

  sendError(stream: ServerStream, error: GrpcError): void {
    sendError(stream, this.#headers, error);
  }

  noMessage(): string {
    return `Received no request message for unary method ${this.path}`;
  }
}

/** One unary call: first the request as received so far, then the information for its handler. */
class UnaryCall<Response> implements ServerCall, StreamHandler, Expiring {
  dueAt = 0;
  heapIndex = -1;
  resetListener: ResetListener | undefined = undefined;
  readonly #stream: ServerStream;
  readonly #target: BoundUnaryMethod<Response>;
  /** NaN until it is first read. */
  #deadlineMicros = Number.NaN;
  /** Set if the request arrives in several chunks. */
  #reader: MessageReader | undefined;
  #messageComplete = false;
  /** Bytes of the message while the handler may hold it. */
  #heldBytes = 0;
  #running = false;
  #ended = false;

  constructor(stream: ServerStream, target: BoundUnaryMethod<Response>) {
    this.#stream = stream;
    this.#target = target;
  }

  get deadlineMicros(): number {
    if (Number.isNaN(this.#deadlineMicros)) {
      const { timeoutMicros, context } = this.#target;
      this.#deadlineMicros =
        timeoutMicros === Number.POSITIVE_INFINITY
          ? timeoutMicros
          : context.options.monotonicMicros() + timeoutMicros;
    }
    return this.#deadlineMicros;
  }

  get receivedMicros(): number {
    return this.#stream.connection.lastReceivedMs * MICROS_PER_MS;
  }

  get peer(): string {
    return this.#stream.connection.peer;
  }

  get requestId(): string | undefined {
    const { fields } = this.#stream.head;
    for (let at = 0; at < fields.length; at += 2) if (fields[at] === 'x-request-id') return fields[at + 1];
    return undefined;
  }

  header(name: string): string | undefined {
    const { fields } = this.#stream.head;
    let value: string | undefined;
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] === name) value = value === undefined ? fields[at + 1] : `${value},${fields[at + 1]}`;
    }
    return value;
  }

  get connection(): object {
    return this.#stream.connection;
  }

  cancelled(): boolean {
    return this.#ended;
  }

  /** Waits for the rest of the request, until shortly after the call's deadline or until the receive timeout. */
  awaitRequest(): void {
    const { timeoutMicros, context } = this.#target;
    this.#stream.state = this;
    const { maxMessageBytes, keptMessageBytes } = context;
    this.#reader = new MessageReader(maxMessageBytes, context.budgetOf(this.#stream), keptMessageBytes);
    // Computes the deadline now: its time starts here, not when the handler reads it.
    void this.deadlineMicros;
    const delayMs = Math.min(timeoutMicros / MICROS_PER_MS + LATE_REQUEST_MS, context.receiveTimeoutMs);
    if (delayMs !== Number.POSITIVE_INFINITY) context.deadlines.add(this, delayMs);
  }

  /** Passes the complete message to the handler. The bytes are not used after this method returns. */
  run(bytes: Uint8Array, start: number, end: number): void {
    let result: Response | Promise<Response>;
    try {
      result = this.#target.handler(bytes, this, start, end);
    } catch (error) {
      this.#fail(this.#target.context.toGrpcError(error));
      return;
    }
    if (result instanceof Promise) this.#wait(result);
    else this.#succeed(result);
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    stream.consumed(end - start);
    if (start < end && !this.#gather(chunk, start, end)) return;
    if (endStream) this.#endRequest();
  }

  onTrailers(): void {
    this.#endRequest();
  }

  onDrained(): void {}

  onStreamReset(): void {
    this.#finish();
  }

  expire(): void {
    const text =
      this.#target.timeoutMicros / MICROS_PER_MS <= this.#target.context.receiveTimeoutMs || this.#running
        ? 'Deadline exceeded'
        : 'the request did not arrive in time';
    this.#fail(new GrpcError(STATUS.DEADLINE_EXCEEDED, text));
  }

  /** False if the call has failed. */
  #gather(chunk: Buffer, start: number, end: number): boolean {
    const reader = this.#reader as MessageReader;
    const { context, path } = this.#target;
    const result = this.#messageComplete ? 'message' : reader.read(chunk, start, end);
    if (result === 'more') return true;
    if (result !== 'message') {
      this.#fail(context.readError(reader, result));
      return false;
    }
    if (this.#messageComplete || reader.position < end) {
      this.#fail(
        new GrpcError(STATUS.UNIMPLEMENTED, `Received a second request message for unary method ${path}`),
      );
      return false;
    }
    this.#messageComplete = true;
    return true;
  }

  #endRequest(): void {
    const { context, encoding } = this.#target;
    if (!this.#messageComplete) {
      this.#fail(new GrpcError(STATUS.UNIMPLEMENTED, this.#target.noMessage()));
      return;
    }
    const reader = this.#reader as MessageReader;
    if (!reader.compressed) {
      this.#runAndFree(reader.take());
      return;
    }
    // A message that waits to be inflated still counts as incomplete.
    context.inflater.inflate(encoding, reader, this, (inflated) => {
      reader.drop();
      if (inflated instanceof GrpcError) this.#fail(inflated);
      else this.#runAndFree(inflated);
    });
  }

  /** The handler's data for the message counts as much as the message, until the call ends. */
  #runAndFree(message: Buffer): void {
    this.#heldBytes = message.length;
    this.#stream.connection.addHeldBytes(this.#heldBytes);
    this.run(message, 0, message.length);
    freeBuffer(message);
  }

  /** Waits for the response or the deadline. */
  #wait(result: Promise<Response>): void {
    const { timeoutMicros, context } = this.#target;
    this.#stream.state = this;
    this.#running = true;
    context.started();
    context.deadlines.remove(this);
    if (timeoutMicros !== Number.POSITIVE_INFINITY) {
      const leftMicros =
        this.#reader === undefined
          ? timeoutMicros
          : Math.max(0, this.deadlineMicros - context.options.monotonicMicros());
      context.deadlines.add(this, leftMicros / MICROS_PER_MS);
    }
    result.then(
      (response) => {
        if (this.#ended) this.#drop(response);
        else this.#succeed(response);
      },
      (error: unknown) => {
        const grpcError = context.toGrpcError(error);
        if (!this.#ended) this.#fail(grpcError);
      },
    );
  }

  #succeed(response: Response): void {
    try {
      this.#target.encoder.accept?.(response, this);
    } catch (error) {
      this.#fail(this.#target.context.toGrpcError(error));
      return;
    }
    this.#finish();
    try {
      if (this.resetListener !== undefined) this.#sendAndRemember(response, this.resetListener);
      else this.#target.sendMessage(this.#stream, response);
    } catch (error) {
      // A part of the response may be sent already.
      this.#target.context.toGrpcError(error);
      this.#stream.reset(ERROR_CODE.INTERNAL_ERROR);
    }
  }

  /** Accepts the response to a call that the caller has canceled. */
  #drop(response: Response): void {
    try {
      this.#target.encoder.accept?.(response, this);
    } catch (error) {
      this.#target.context.toGrpcError(error);
      return;
    }
    this.resetListener?.onReset();
  }

  /** Separate from {@link #succeed}, which stays short for calls without a listener. */
  #sendAndRemember(response: Response, listener: ResetListener): void {
    const call = this.#target.context.rememberAnswered(this.#stream, listener);
    this.#target.sendMessage(this.#stream, response);
    call.isBlocked = this.#stream.queuedBytes > 0;
  }

  #fail(error: GrpcError): void {
    this.#finish();
    this.#target.sendError(this.#stream, error);
  }

  #finish(): void {
    this.#ended = true;
    this.#stream.state = FINISHED_CALL;
    if (this.heapIndex >= 0) this.#target.context.deadlines.remove(this);
    this.#reader?.drop();
    if (this.#heldBytes > 0) this.#stream.connection.addHeldBytes(-this.#heldBytes);
    if (this.#running) {
      this.#running = false;
      this.#target.context.ended();
    }
  }
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
      if (state instanceof BoundUnaryMethod) state.startGathering(stream);
    }
  };
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
