import type { Metadata, MethodDefinition } from '@grpc/grpc-js';
import { HeaderField } from '../../h2/hpack/header-field.js';
import type { ServerStream } from '../../h2/request-handler.js';
import { GrpcError, STATUS } from '../grpc-server.js';
import type { CallContext } from './call-context.js';
import { type CallState, OVER } from './call-state.js';
import type { Expiring } from './deadline-queue.js';
import type { GrpcHead } from './grpc-head.js';
import { MessageReader, PREFIX_BYTES, type ReceiveBudget } from './message-reader.js';
import { toFields, toMetadata } from './metadata-fields.js';
import { ACCEPT_ENCODING, percentEncode } from './responses.js';

/** How a call ends, in the words of @grpc/grpc-js. */
export interface CallStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata | null | undefined;
}

/** What a call tells the object that its handler holds. */
export interface RareListener {
  /** The next request message; false: {@link StreamingCall.readOn} asks for the one after it. */
  onMessage(message: unknown): boolean;
  onRequestEnd(): void;
  /** The call is over, however it went. */
  onOver(): void;
}

interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly compressed: boolean;
}

const MICROS_PER_MS = 1000;
/**
 * Messages of a stream of requests that its handler may hold: one it has not taken yet, and one whose answer waits for
 * the caller.
 */
const HELD_MESSAGES = 2;

/** A call of a service that is asked rarely, as its HTTP/2 stream: messages, metadata and status in both directions. */
export class StreamingCall implements CallState, Expiring {
  dueAt = 0;
  place = -1;
  /** When the caller stops waiting, milliseconds since the epoch, or Infinity. */
  readonly deadline: number;
  readonly #stream: ServerStream;
  readonly #method: MethodDefinition<unknown, unknown>;
  readonly #head: GrpcHead;
  readonly #context: CallContext;
  readonly #reader: MessageReader;
  readonly #budget: ReceiveBudget;
  /**
   * Bytes of each message that the handler may still hold. A call that goes on for long, as Watch does, would else keep
   * them uncounted.
   */
  readonly #held: number[] = [];
  readonly #received: ReceivedMessage[] = [];
  readonly #beganMicros: number;
  #listener: RareListener | undefined;
  /** The listener has room for a message. */
  #wanted = true;
  #inflating = false;
  #delivering = false;
  /** The next message waits for a turn of the connection. */
  #waitsForTurn = false;
  #requestEnded: boolean;
  #endTold = false;
  /** Body bytes for which the caller has no credit yet. */
  #uncredited = 0;
  #headersSent = false;
  #onDrained: (() => void) | undefined;
  #over = false;
  #metadata: Metadata | undefined;

  constructor(
    stream: ServerStream,
    method: MethodDefinition<unknown, unknown>,
    head: GrpcHead,
    context: CallContext,
    requestEnded: boolean,
  ) {
    this.#stream = stream;
    this.#method = method;
    this.#head = head;
    this.#context = context;
    this.#requestEnded = requestEnded;
    this.#budget = context.budgetOf(stream);
    this.#reader = new MessageReader(context.maxMessageBytes, this.#budget);
    this.#beganMicros = context.options.monotonicMicros();
    this.deadline = Date.now() + head.timeoutMicros / MICROS_PER_MS;
    stream.state = this;
  }

  cancelled(): boolean {
    return this.#over;
  }

  get metadata(): Metadata {
    this.#metadata ??= toMetadata(this.#stream.head.fields);
    return this.#metadata;
  }

  get connection(): object {
    return this.#stream.connection;
  }

  get path(): string {
    return this.#method.path;
  }

  get peer(): string {
    return this.#stream.connection.peer;
  }

  get host(): string {
    return this.#stream.head.authority ?? this.metadata.get('host')[0]?.toString() ?? '';
  }

  /** Begins to tell `listener` of the request. */
  start(listener: RareListener): void {
    if (this.#over) {
      process.nextTick(() => listener.onOver());
      return;
    }
    this.#listener = listener;
    const timeoutMs = this.#head.timeoutMicros / MICROS_PER_MS;
    // A stream of requests may stay open for as long as both sides like.
    this.#expireIn(
      this.#method.requestStream ? timeoutMs : Math.min(timeoutMs, this.#context.receiveTimeoutMs),
    );
    this.#deliver();
  }

  /** The request is complete: from here on only the caller's own deadline counts. */
  stopReceiveTimeout(): void {
    const passed = this.#context.options.monotonicMicros() - this.#beganMicros;
    this.#context.deadlines.remove(this);
    this.#expireIn(Math.max(0, this.#head.timeoutMicros - passed) / MICROS_PER_MS);
  }

  /** The listener has room again. */
  readOn(): void {
    this.#wanted = true;
    this.#deliver();
  }

  sendMetadata(metadata: Metadata | undefined): void {
    if (this.#headersSent || this.#over) return;
    this.#headersSent = true;
    this.#stream.sendHeaders([...this.#head.responseHeaders, ACCEPT_ENCODING, ...toFields(metadata)], false);
  }

  /** `sent` is called when there is room for another message. A message that cannot be written ends the call. */
  sendMessage(message: unknown, sent: () => void): void {
    if (this.#over) return;
    let bytes: Buffer;
    try {
      bytes = this.#method.responseSerialize(message);
    } catch {
      this.sendStatus({ code: STATUS.INTERNAL, details: 'Error serializing response' });
      return;
    }
    this.sendMetadata(undefined);
    const framed = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
    framed[0] = 0;
    framed.writeUInt32BE(bytes.length, 1);
    framed.set(bytes, PREFIX_BYTES);
    this.#stream.sendData(framed, false);
    if (this.#stream.queuedBytes === 0) sent();
    else this.#onDrained = sent;
  }

  /** Ends the call after the messages sent before; only the first status counts. */
  sendStatus({ code, details, metadata }: CallStatus): void {
    if (this.#over) return;
    const fields = [new HeaderField('grpc-status', String(code))];
    if (code !== STATUS.OK) fields.push(new HeaderField('grpc-message', percentEncode(details)));
    if (code === STATUS.UNIMPLEMENTED) fields.push(ACCEPT_ENCODING);
    fields.push(...toFields(metadata));
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
        this.#fail(this.#context.readError(this.#reader, result));
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
    const sent = this.#onDrained;
    this.#onDrained = undefined;
    sent?.();
  }

  onReset(): void {
    this.#finish();
  }

  expire(): void {
    this.sendStatus({ code: STATUS.DEADLINE_EXCEEDED, details: 'Deadline exceeded' });
  }

  #expireIn(delayMs: number): void {
    if (!this.#over && delayMs !== Number.POSITIVE_INFINITY) this.#context.deadlines.add(this, delayMs);
  }

  /**
   * Hands over what was received, one message at a time and in order, as long as the listener has room; only then is
   * there credit for more.
   */
  #deliver(): void {
    if (this.#delivering || this.#waitsForTurn || this.#listener === undefined) return;
    this.#delivering = true;
    while (this.#wanted && !this.#inflating && !this.#over) {
      if (this.#received.length === 0 || !this.#hasTurn()) break;
      const next = this.#received.shift() as ReceivedMessage;
      if (!next.compressed) {
        this.#hand(next.bytes);
        continue;
      }
      this.#inflating = true;
      const compressed = { message: next.bytes };
      this.#context.inflater.inflate(this.#head.encoding, compressed, this, (message) => {
        this.#inflating = false;
        if (message instanceof GrpcError) this.#fail(message);
        else this.#hand(message);
        this.#deliver();
      });
    }
    this.#delivering = false;
    if (this.#over || this.#inflating || this.#received.length > 0) return;
    if (this.#requestEnded) {
      if (this.#method.requestStream && !this.#reader.empty) {
        this.#fail(new GrpcError(STATUS.INTERNAL, 'Received an incomplete message'));
      } else {
        this.#tellEnd();
      }
    } else if (this.#wanted) {
      const bytes = this.#uncredited;
      this.#uncredited = 0;
      this.#stream.consumed(bytes);
    }
  }

  /**
   * Whether the next message may be served in this turn of the event loop; if not, {@link #deliver} is called in a
   * later one.
   */
  #hasTurn(): boolean {
    const { auxiliaryTurns } = this.#context;
    const { connection } = this.#stream;
    if (auxiliaryTurns.enter(connection)) return true;
    this.#waitsForTurn = true;
    auxiliaryTurns.wait(connection, () => {
      this.#waitsForTurn = false;
      this.#deliver();
    });
    return false;
  }

  #hand(bytes: Buffer): void {
    if (this.#over) return;
    if (!this.#hold(bytes.length)) {
      this.#fail(this.#context.readError(this.#reader, 'no room'));
      return;
    }
    let message: unknown;
    try {
      message = this.#method.requestDeserialize(bytes);
    } catch {
      this.#fail(new GrpcError(STATUS.INTERNAL, 'Error deserializing request'));
      return;
    }
    this.#wanted = false;
    if (this.#listener?.onMessage(message) === true) this.#wanted = true;
  }

  /** Counts a message for the handler; false when the connection holds too much already. */
  #hold(bytes: number): boolean {
    if (!this.#budget.take(bytes)) return false;
    this.#held.push(bytes);
    if (this.#method.requestStream && this.#held.length > HELD_MESSAGES) {
      this.#budget.give(this.#held.shift() as number);
    }
    return true;
  }

  #tellEnd(): void {
    if (this.#endTold) return;
    this.#endTold = true;
    this.#listener?.onRequestEnd();
  }

  #fail(error: GrpcError): void {
    this.sendStatus({ code: error.code, details: error.message });
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#uncredited > 0) this.#stream.consumed(this.#uncredited);
    this.#stream.state = OVER;
    this.#context.deadlines.remove(this);
    this.#reader.drop();
    for (const bytes of this.#held.splice(0)) this.#budget.give(bytes);
    this.#received.length = 0;
    this.#context.auxiliaryCallEnded(this.#stream);
    const listener = this.#listener;
    // Not inside of whatever the handler is doing right now.
    if (listener !== undefined) process.nextTick(() => listener.onOver());
  }
}
