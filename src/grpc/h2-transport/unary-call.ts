import type { ServerStream } from '../../h2/request-handler.js';
import { freeBuffer } from '../../runtime/free-buffer.js';
import { type CallInfo, GrpcError, STATUS, type UnaryHandler } from '../grpc-server.js';
import type { CallContext } from './call-context.js';
import { type CallState, FINISHED_CALL } from './call-state.js';
import type { Expiring } from './deadline-queue.js';
import { MessageReader } from './message-reader.js';

const MICROS_PER_MS = 1000;

/** State that all calls with one head share, and the functions that send their responses. */
export interface UnaryCallTarget {
  readonly path: string;
  readonly handler: UnaryHandler;
  readonly context: CallContext;
  readonly timeoutMicros: number;
  /** `grpc-encoding` of the request. */
  readonly encoding: string;
  sendMessage(stream: ServerStream, message: Uint8Array): void;
  sendError(stream: ServerStream, error: GrpcError): void;
  /** Returns the error message for a call without a message. */
  noMessage(): string;
}

/** One unary call: first the request as received so far, then the information for its handler. */
export class UnaryCall implements CallInfo, CallState, Expiring {
  dueAt = 0;
  heapIndex = -1;
  readonly #stream: ServerStream;
  readonly #target: UnaryCallTarget;
  /** NaN until it is first read. */
  #deadlineMicros = Number.NaN;
  /** Set if the request arrives in several chunks. */
  #reader: MessageReader | undefined;
  #messageComplete = false;
  /** Bytes of the message while the handler may hold it. */
  #heldBytes = 0;
  #running = false;
  #ended = false;

  constructor(stream: ServerStream, target: UnaryCallTarget) {
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

  /** Waits for the rest of the request, until the call's deadline or the receive timeout. */
  awaitRequest(): void {
    const { timeoutMicros, context } = this.#target;
    this.#stream.state = this;
    this.#reader = new MessageReader(context.maxMessageBytes, context.budgetOf(this.#stream));
    // Computes the deadline now: its time starts here, not when the handler reads it.
    void this.deadlineMicros;
    const delayMs = Math.min(timeoutMicros / MICROS_PER_MS, context.receiveTimeoutMs);
    if (delayMs !== Number.POSITIVE_INFINITY) context.deadlines.add(this, delayMs);
  }

  /** Passes the complete message to the handler. It is not used after this method returns. */
  run(message: Uint8Array): void {
    let result: Uint8Array | Promise<Uint8Array>;
    try {
      result = this.#target.handler(message, this);
    } catch (error) {
      this.#fail(this.#target.context.toGrpcError(error));
      return;
    }
    if (isPromise(result)) this.#wait(result);
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

  onReset(): void {
    this.#finish();
  }

  expire(): void {
    const text =
      this.#target.timeoutMicros / MICROS_PER_MS <= this.#target.context.receiveTimeoutMs || this.#running
        ? 'Deadline exceeded'
        : 'the request did not come in time';
    this.#fail(new GrpcError(STATUS.DEADLINE_EXCEEDED, text));
  }

  /** Returns false if the call has failed. */
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
    this.run(message);
    freeBuffer(message);
  }

  /** Waits for the response or the deadline. */
  #wait(result: Promise<Uint8Array>): void {
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
      (message) => {
        if (!this.#ended) this.#succeed(message);
      },
      (error: unknown) => {
        const grpcError = context.toGrpcError(error);
        if (!this.#ended) this.#fail(grpcError);
      },
    );
  }

  #succeed(message: Uint8Array): void {
    this.#finish();
    this.#target.sendMessage(this.#stream, message);
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

function isPromise(result: Uint8Array | Promise<Uint8Array>): result is Promise<Uint8Array> {
  return (result as Partial<Promise<Uint8Array>>).then !== undefined;
}
