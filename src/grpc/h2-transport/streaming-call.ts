import { HeaderField } from '../../h2/hpack/header-field.js';
import type { ServerStream } from '../../h2/request-handler.js';
import type { Fields, GenericCall, GenericHandler, GenericMethod } from '../generic-method.js';
import { GrpcError, STATUS } from '../grpc-server.js';
import { type BoundMethod, FINISHED_CALL, type StreamHandler } from './bound-method.js';
import type { Expiring } from './deadline-queue.js';
import type { GrpcHead } from './grpc-head.js';
import type { GrpcServerState } from './grpc-server-state.js';
import { MessageReader, PREFIX_BYTES, type ReceiveBudget } from './message-reader.js';
import { ACCEPT_ENCODING, sendError, statusFields } from './responses.js';

interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly compressed: boolean;
}

const MICROS_PER_MS = 1000;
/** Maximum bytes of responses that wait for a caller that does not read. One more response ends the call. */
export const MAX_UNREAD_BYTES = 65_536;

/** Calls of one generic method with the same head. */
export class BoundStreamingMethod implements BoundMethod {
  readonly #method: GenericMethod;
  readonly #head: GrpcHead;
  readonly #context: GrpcServerState;

  constructor(method: GenericMethod, head: GrpcHead, context: GrpcServerState) {
    this.#method = method;
    this.#head = head;
    this.#context = context;
  }

  begin(stream: ServerStream, requestEnded: boolean): void {
    if (this.#context.tryBeginGenericCall(stream)) {
      new StreamingCall(stream, this.#method, this.#head, this.#context).start(requestEnded);
      return;
    }
    stream.state = FINISHED_CALL;
    const text = 'too many health or reflection calls are open on this connection';
    sendError(stream, this.#head.responseHeaders, new GrpcError(STATUS.RESOURCE_EXHAUSTED, text));
  }
}

/** A call of a generic method on its HTTP/2 stream. */
class StreamingCall implements GenericCall, StreamHandler, Expiring {
  dueAt = 0;
  heapIndex = -1;
  readonly #stream: ServerStream;
  readonly #method: GenericMethod;
  readonly #head: GrpcHead;
  readonly #context: GrpcServerState;
  readonly #reader: MessageReader;
  readonly #budget: ReceiveBudget;
  /**
   * Bytes of the last message, which the handler may still hold. Otherwise a long call, such as Watch, would hold them
   * uncounted.
   */
  #heldBytes = 0;
  readonly #received: ReceivedMessage[] = [];
  readonly #beganMicros: number;
  /** Undefined until the request is complete, for a method without a request stream. */
  #handler: GenericHandler | undefined;
  /** The message of a method without a request stream. */
  #request: Buffer | undefined;
  #inflating = false;
  #delivering = false;
  /** Whether the next message waits for the connection's turn. */
  #waitsForTurn = false;
  #requestEnded = false;
  #endDelivered = false;
  /** Body bytes whose flow control credit was not returned to the caller yet. */
  #uncredited = 0;
  #headersSent = false;
  #ended = false;

  constructor(stream: ServerStream, method: GenericMethod, head: GrpcHead, context: GrpcServerState) {
    this.#stream = stream;
    this.#method = method;
    this.#head = head;
    this.#context = context;
    this.#budget = context.budgetOf(stream);
    this.#reader = new MessageReader(context.maxGenericBytes, this.#budget);
    this.#beganMicros = context.options.monotonicMicros();
    stream.state = this;
  }

  cancelled(): boolean {
    return this.#ended;
  }

  get connection(): object {
    return this.#stream.connection;
  }

  get fields(): Fields {
    return this.#stream.head.fields;
  }

  get timeoutMicros(): number {
    return this.#head.timeoutMicros;
  }

  /** Starts to pass the request to the handler. Without a request stream, it first waits for the whole request. */
  start(requestEnded: boolean): void {
    this.#requestEnded = requestEnded;
    if (this.#method.responseStream) this.#context.openStreams.add(this);
    if (this.#ended) return;
    const timeoutMs = this.timeoutMicros / MICROS_PER_MS;
    // A request stream may stay open as long as both sides keep it open.
    if (this.#method.requestStream) this.#expireIn(timeoutMs);
    else this.#expireIn(Math.min(timeoutMs, this.#context.receiveTimeoutMs));
    if (this.#method.requestStream) this.#begin();
    this.#deliver();
  }

  sendHeaders(fields: Fields): void {
    if (this.#headersSent || this.#ended) return;
    this.#headersSent = true;
    const all = [...this.#head.responseHeaders, ACCEPT_ENCODING, ...headerFields(fields)];
    this.#stream.sendHeaders(all, false);
  }

  send(message: Uint8Array): boolean {
    if (this.#ended) return false;
    if (this.#stream.queuedBytes > MAX_UNREAD_BYTES) {
      this.end(new GrpcError(STATUS.RESOURCE_EXHAUSTED, 'the caller does not read the responses'));
      return false;
    }
    this.sendHeaders([]);
    const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
    framed[0] = 0;
    framed.writeUInt32BE(message.length, 1);
    framed.set(message, PREFIX_BYTES);
    this.#stream.sendData(framed, false);
    return this.#stream.queuedBytes === 0;
  }

  end(error?: GrpcError, trailers: Fields = []): void {
    if (this.#ended) return;
    const fields = [...statusFields(error?.code ?? STATUS.OK, error?.message ?? '')];
    if (error?.code === STATUS.UNIMPLEMENTED) fields.push(ACCEPT_ENCODING);
    fields.push(...headerFields(trailers));
    this.#finish();
    if (this.#headersSent) {
      this.#stream.sendTrailers(fields);
    } else {
      this.#stream.sendHeaders([...this.#head.responseHeaders, ...fields], true);
    }
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    this.#uncredited += end - start;
    this.#requestEnded = endStream;
    let at = start;
    while (at < end) {
      const result = this.#reader.read(chunk, at, end);
      if (result === 'message') {
        at = this.#reader.position;
        const compressed = this.#reader.compressed;
        this.#received.push({ bytes: this.#reader.take(), compressed });
      } else if (result === 'more') {
        break;
      } else {
        stream.consumed(this.#uncredited);
        this.end(this.#context.readError(this.#reader, result));
        return;
      }
    }
    this.#deliver();
  }

  onTrailers(): void {
    this.#requestEnded = true;
    this.#deliver();
  }

  onDrained(): void {
    this.#notify((handler) => handler.onDrained?.());
    this.#deliver();
  }

  onStreamReset(): void {
    this.#finish();
  }

  expire(): void {
    this.end(new GrpcError(STATUS.DEADLINE_EXCEEDED, 'Deadline exceeded'));
  }

  #expireIn(delayMs: number): void {
    if (!this.#ended && delayMs !== Number.POSITIVE_INFINITY) this.#context.deadlines.add(this, delayMs);
  }

  #begin(): void {
    try {
      this.#handler = this.#method.begin(this);
    } catch (error) {
      this.end(this.#context.toGrpcError(error));
    }
  }

  /** Errors that a handler throws must not reach the code that reads the connection. */
  #notify(event: (handler: GenericHandler) => void): void {
    if (this.#handler === undefined) return;
    try {
      event(this.#handler);
    } catch (error) {
      this.end(this.#context.toGrpcError(error));
    }
  }

  /**
   * Delivers received messages, one at a time and in order, while the caller reads the responses. Flow control credit
   * is returned only for delivered messages.
   */
  #deliver(): void {
    if (this.#delivering || this.#waitsForTurn) return;
    this.#delivering = true;
    while (this.#received.length > 0 && this.#wantsMessage() && this.#hasTurn()) {
      const next = this.#received.shift() as ReceivedMessage;
      if (!next.compressed) {
        this.#hand(next.bytes);
        continue;
      }
      this.#inflating = true;
      const compressed = { message: next.bytes, lend: () => next.bytes };
      this.#context.inflater.inflate(this.#head.encoding, compressed, this, (message) => {
        this.#inflating = false;
        const { maxGenericBytes } = this.#context;
        if (message instanceof GrpcError) this.end(message);
        else if (message.length > maxGenericBytes) {
          const text = `Received message that decompresses to a size larger than ${maxGenericBytes}`;
          this.end(new GrpcError(STATUS.RESOURCE_EXHAUSTED, text));
        } else this.#hand(message);
        this.#deliver();
      });
    }
    this.#delivering = false;
    if (this.#ended || this.#inflating || this.#received.length > 0) return;
    if (this.#requestEnded) {
      this.#endRequest();
    } else if (this.#wantsMessage()) {
      const bytes = this.#uncredited;
      this.#uncredited = 0;
      this.#stream.consumed(bytes);
    }
  }

  /**
   * While responses wait for the caller, no further message is delivered, because a response may refer to its request.
   */
  #wantsMessage(): boolean {
    return !this.#inflating && !this.#ended && this.#stream.queuedBytes === 0;
  }

  /**
   * Returns whether the next message may be handled in this turn of the event loop. If not, {@link #deliver} is called
   * in a later turn.
   */
  #hasTurn(): boolean {
    const { genericScheduler } = this.#context;
    const { connection } = this.#stream;
    if (genericScheduler.tryStart(connection)) return true;
    this.#waitsForTurn = true;
    genericScheduler.wait(connection, () => {
      this.#waitsForTurn = false;
      this.#deliver();
    });
    return false;
  }

  #hand(bytes: Buffer): void {
    if (this.#ended) return;
    if (this.#method.requestStream) this.#release();
    if (!this.#budget.take(bytes.length)) {
      this.end(this.#context.readError(this.#reader, 'no room'));
      return;
    }
    this.#heldBytes += bytes.length;
    if (this.#method.requestStream) {
      this.#notify((handler) => handler.onMessage(bytes));
    } else if (this.#request === undefined) {
      this.#request = bytes;
    } else {
      this.#refuse('Received a second request message');
    }
  }

  #endRequest(): void {
    if (this.#endDelivered) return;
    this.#endDelivered = true;
    const request = this.#request;
    if (this.#method.requestStream) {
      if (!this.#reader.empty) this.end(new GrpcError(STATUS.INTERNAL, 'Received an incomplete message'));
    } else if (request === undefined) {
      this.#refuse('Received no request message');
    } else {
      this.#awaitAnswer();
      this.#begin();
      this.#notify((handler) => handler.onMessage(request));
    }
    if (!this.#ended) this.#notify((handler) => handler.onRequestEnd?.());
  }

  #refuse(why: string): void {
    this.end(new GrpcError(STATUS.UNIMPLEMENTED, `${why} for method ${this.#method.path}`));
  }

  /** The request is complete, so only the caller's own deadline applies from here. */
  #awaitAnswer(): void {
    const passed = this.#context.options.monotonicMicros() - this.#beganMicros;
    this.#context.deadlines.remove(this);
    this.#expireIn(Math.max(0, this.timeoutMicros - passed) / MICROS_PER_MS);
  }

  #release(): void {
    this.#budget.release(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#uncredited > 0) this.#stream.consumed(this.#uncredited);
    this.#stream.state = FINISHED_CALL;
    this.#context.deadlines.remove(this);
    this.#context.openStreams.delete(this);
    this.#reader.drop();
    this.#release();
    this.#received.length = 0;
    this.#context.genericCallEnded(this.#stream);
    // Deferred, because the handler may be running now.
    process.nextTick(() => this.#notify((handler) => handler.onClosed?.()));
  }
}

function headerFields(fields: Fields): HeaderField[] {
  const made: HeaderField[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    made.push(new HeaderField(fields[at] as string, fields[at + 1] as string));
  }
  return made;
}
