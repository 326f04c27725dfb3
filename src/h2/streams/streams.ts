import { Budget } from '../budget.js';
import { CONTROL_FRAMES_PER_REQUEST, type ControlBudget } from '../control-budget.js';
import { ERROR_CODE } from '../error-code.js';
import { ConnectionFailure, type Failure, type StreamFailure } from '../failure.js';
import { INITIAL_WINDOW_BYTES } from '../frame/frame-type.js';
import { writeRstStream, writeWindowUpdate } from '../frame/write-frame.js';
import { HeaderField } from '../hpack/header-field.js';
import type { HeaderList } from '../hpack/header-list.js';
import type { H2Limits } from '../limits.js';
import type { OutputBuffer } from '../output-buffer.js';
import type { RequestHandler, ServerConnection } from '../request-handler.js';
import { type CheckedHead, checkTrailers, MalformedHead, requestHead } from '../request-head.js';
import { HEAD_WORK, REQUEST_WORK, type WorkSlice } from '../work-slice.js';
import { overflowsWindow, ReceiveWindow } from './flow-window.js';
import { ResetStreams } from './reset-streams.js';
import { type ResponseEvents, ResponseSender } from './response-sender.js';
import { H2Stream, type StreamOperations } from './stream.js';
import {
  DATA_BEYOND_WINDOW,
  ENDED,
  HEADERS_WHEN_CLOSED,
  IDLE_STREAM,
  LARGE_TRAILERS,
  MALFORMED,
  OPEN_TRAILERS,
  REFUSED,
  SELF_DEPENDENT,
  SETTINGS_OVERFLOW,
  STREAM_BEYOND_WINDOW,
  STREAM_OVERFLOW,
  TOO_MANY_RESETS,
  WINDOW_OVERFLOW,
  WRONG_LENGTH,
} from './stream-failures.js';

/** What the streams need of their connection. */
export interface StreamsHost extends ServerConnection {
  /** Milliseconds, as of the chunk at hand. */
  readonly lastReceivedMs: number;
  /** What is being worked on. */
  readonly workSlice: WorkSlice;
  /** Something stands in the output, or waits for windows. */
  onOutputAdded(): void;
}

/** Memory of an open stream, with what a handler keeps of it: about what V8's heap shows. Its head comes on top. */
const STREAM_BYTES = 1024;

/** The answer to a header list over SETTINGS_MAX_HEADER_LIST_SIZE (RFC 6585 section 5). */
const FIELDS_TOO_LARGE = [new HeaderField(':status', '431')];

/**
 * The streams of a connection: their table, their states, their windows, and what frames and the handler do to them.
 */
export class Streams implements StreamOperations, ResponseEvents {
  readonly sender: ResponseSender;
  /** The connection's window for what the peer sends. */
  readonly window: ReceiveWindow;
  /** Highest stream the peer has opened; all above are idle. */
  highestId = 0;
  readonly #open = new Map<number, H2Stream>();
  readonly #resetStreams: ResetStreams;
  readonly #resets: Budget;
  readonly #host: StreamsHost;
  readonly #handler: RequestHandler;
  readonly #limits: H2Limits;
  readonly #control: ControlBudget;
  readonly #output: OutputBuffer;
  /** What a new stream may send us; at least the default until the peer has acknowledged ours. */
  #receiveWindowBytes: number;
  /** What a new stream may be sent. */
  #sendWindowBytes = INITIAL_WINDOW_BYTES;
  /** Streams above are ignored: the last GOAWAY has said so. */
  #lastAllowedId = Number.POSITIVE_INFINITY;
  /** The request before; the next is probably like it. */
  #lastHead: CheckedHead | undefined = undefined;
  /** Header lists of open streams, as far as they do not share one. Bytes. */
  #headBytes = 0;
  readonly #streamBatch: number;
  readonly #connectionBatch: number;

  constructor(
    host: StreamsHost,
    handler: RequestHandler,
    output: OutputBuffer,
    limits: H2Limits,
    control: ControlBudget,
  ) {
    this.#host = host;
    this.#handler = handler;
    this.#output = output;
    this.#limits = limits;
    this.#control = control;
    this.sender = new ResponseSender(output, this, control);
    this.window = new ReceiveWindow(Math.max(INITIAL_WINDOW_BYTES, limits.connectionWindowBytes));
    this.#resetStreams = new ResetStreams(limits.maxRememberedResets);
    this.#resets = new Budget(limits.resetBurst, limits.resetRefillPerSecond, host.lastReceivedMs);
    this.#receiveWindowBytes = Math.max(INITIAL_WINDOW_BYTES, limits.streamWindowBytes);
    this.#streamBatch = Math.ceil(limits.streamWindowBytes / 2);
    this.#connectionBatch = Math.ceil(limits.connectionWindowBytes / 2);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Memory of streams, of what the handler has not consumed, and of answers that wait for windows. */
  get heldBytes(): number {
    return STREAM_BYTES * this.size + this.#headBytes + this.window.unconsumed + this.sender.queuedBytes;
  }

  /** A stream that was never opened: no frame but HEADERS and PRIORITY may name it (RFC 9113 section 5.1, idle). */
  isIdle(id: number): boolean {
    return id > this.highestId || (id & 1) === 0;
  }

  /** The last stream that was or may have been acted upon, for GOAWAY (section 6.8). */
  get lastServedId(): number {
    return Math.min(this.highestId, this.#lastAllowedId);
  }

  /** Streams after {@link lastServedId} are ignored from now on. */
  refuseNewStreams(): void {
    this.#lastAllowedId = this.lastServedId;
  }

  /** A complete header block: a request or, on a stream that is open, trailers. `id` is odd. */
  onHeaders(id: number, list: HeaderList, endStream: boolean, selfDependent: boolean): Failure {
    if (id <= this.highestId) return this.#onTrailers(id, list, endStream, selfDependent);
    this.highestId = id;
    if (id > this.#lastAllowedId) return this.#chargeControl();
    if (selfDependent) return SELF_DEPENDENT;
    if (this.#open.size >= this.#limits.maxConcurrentStreams) return REFUSED;
    if (list.tooLarge) {
      this.#refuseFields(id, endStream);
      return undefined;
    }
    const head = requestHead(list, this.#lastHead);
    if (head instanceof MalformedHead) return MALFORMED;
    const headBytes = head === this.#lastHead ? 0 : list.size;
    this.#lastHead = head;
    if (endStream) {
      if (head.contentLength > 0) return WRONG_LENGTH;
      this.#control.earned += CONTROL_FRAMES_PER_REQUEST;
    }
    const stream = new H2Stream(
      id,
      head,
      this.#host,
      this,
      endStream,
      head.contentLength,
      this.#sendWindowBytes,
      this.#receiveWindowBytes,
    );
    stream.headBytes = headBytes;
    this.#headBytes += headBytes;
    this.#host.workSlice.remaining -= endStream ? REQUEST_WORK : HEAD_WORK;
    this.#open.set(id, stream);
    this.#handler.onRequest(stream, endStream);
    return undefined;
  }

  /**
   * A DATA frame of `length` octets, padding and its length included, with the body `chunk[start, end)`. `id` is not 0.
   */
  onData(id: number, length: number, chunk: Buffer, start: number, end: number, endStream: boolean): Failure {
    if (!this.window.receive(length)) return DATA_BEYOND_WINDOW;
    const stream = this.#open.get(id);
    if (stream === undefined || stream.remoteEnded) {
      this.#creditConnection(length);
      if (stream !== undefined) return ENDED;
      return this.#checkClosed(id) ?? (start === end ? this.#chargeControl() : undefined);
    }
    if (!stream.receiveWindow.receive(length)) {
      this.#creditConnection(length);
      return STREAM_BEYOND_WINDOW;
    }
    const octets = end - start;
    if (octets === 0 && !endStream) {
      const flood = this.#chargeControl();
      if (flood !== undefined) return flood;
    }
    if (length !== octets) this.consumed(stream, length - octets);
    if (stream.remainingContentLength >= 0) {
      stream.remainingContentLength -= octets;
      if (stream.remainingContentLength < 0 || (endStream && stream.remainingContentLength > 0))
        return WRONG_LENGTH;
    }
    if (endStream) {
      stream.remoteEnded = true;
      this.#control.earned += CONTROL_FRAMES_PER_REQUEST;
      this.#host.workSlice.remaining -= REQUEST_WORK;
    }
    this.#handler.onData(stream, chunk, start, end, endStream);
    return undefined;
  }

  /** RST_STREAM of the peer. `id` is not idle. */
  onRstStream(id: number, errorCode: number): Failure {
    const stream = this.#open.get(id);
    if (stream === undefined) return this.#chargeControl();
    this.#resetStreams.add(id, 'peer');
    this.#close(stream);
    this.#handler.onReset(stream, errorCode);
    return this.#resets.take(this.#host.lastReceivedMs) ? undefined : TOO_MANY_RESETS;
  }

  /** WINDOW_UPDATE of a stream; one that is closed does not care (section 6.9). `id` is not idle. */
  onStreamWindow(id: number, increment: number): Failure {
    const stream = this.#open.get(id);
    if (stream === undefined) return undefined;
    if (overflowsWindow(stream.sendWindow, increment)) return STREAM_OVERFLOW;
    stream.sendWindow += increment;
    this.#resume(stream);
    return undefined;
  }

  /** WINDOW_UPDATE of the connection. */
  onConnectionWindow(increment: number): Failure {
    const { sender } = this;
    if (overflowsWindow(sender.window, increment)) return WINDOW_OVERFLOW;
    sender.window += increment;
    for (let stream = sender.nextWaiting(); stream !== undefined; stream = sender.nextWaiting()) {
      this.#resume(stream);
    }
    return undefined;
  }

  /** The peer's SETTINGS_INITIAL_WINDOW_SIZE: changes all streams' windows by the difference (section 6.9.2). */
  setSendWindow(size: number): Failure {
    const difference = size - this.#sendWindowBytes;
    this.#sendWindowBytes = size;
    if (difference === 0) return undefined;
    for (const stream of this.#open.values()) {
      if (overflowsWindow(stream.sendWindow, difference)) return SETTINGS_OVERFLOW;
      stream.sendWindow += difference;
    }
    if (difference < 0) return undefined;
    for (const stream of [...this.#open.values()]) {
      if (!stream.closed && stream.sendWindow > 0) this.#resume(stream);
    }
    return undefined;
  }

  /** The peer has read our SETTINGS: new streams get the window they name, be it smaller. */
  onSettingsAck(): void {
    this.#receiveWindowBytes = this.#limits.streamWindowBytes;
  }

  /**
   * Resets the stream that a frame with a {@link StreamFailure} names. Each counts: what the peer makes us reset is as
   * much work as what it resets itself. A stream that was never opened cannot be reset (section 5.1, idle).
   */
  fail(id: number, failure: StreamFailure): ConnectionFailure | undefined {
    if (this.isIdle(id)) return new ConnectionFailure(failure.code, failure.text);
    if (!this.#resets.take(this.#host.lastReceivedMs)) return TOO_MANY_RESETS;
    const stream = this.#open.get(id);
    writeRstStream(this.#output, id, failure.code);
    this.#resetStreams.add(id, 'us');
    if (stream !== undefined) {
      this.#close(stream);
      this.#handler.onReset(stream, failure.code);
    }
    return undefined;
  }

  /** The connection is over: tells the handler of every stream, or of `most` of them, the oldest. */
  resetAll(errorCode: number, maxStreams: number = Number.POSITIVE_INFINITY): void {
    let left = maxStreams;
    // A stream that goes meanwhile is not in the table any more, and none is added.
    for (const stream of this.#open.values()) {
      if (left-- <= 0) return;
      this.#close(stream);
      this.#handler.onReset(stream, errorCode);
    }
  }

  sendHeaders(stream: H2Stream, fields: readonly HeaderField[], endStream: boolean): void {
    this.sender.sendHeaders(stream, fields, endStream);
    this.#host.onOutputAdded();
  }

  sendData(stream: H2Stream, bytes: Uint8Array, endStream: boolean): void {
    this.sender.sendData(stream, bytes, endStream);
    this.#host.onOutputAdded();
  }

  sendTrailers(stream: H2Stream, fields: readonly HeaderField[]): void {
    this.sender.sendTrailers(stream, fields);
    this.#host.onOutputAdded();
  }

  sendResponse(
    stream: H2Stream,
    headers: readonly HeaderField[],
    prefix: Uint8Array,
    body: Uint8Array,
    trailers: readonly HeaderField[],
  ): void {
    this.sender.sendResponse(stream, headers, prefix, body, trailers);
    this.#host.onOutputAdded();
  }

  reset(stream: H2Stream, errorCode: number): void {
    writeRstStream(this.#output, stream.id, errorCode);
    this.#resetStreams.add(stream.id, 'us');
    this.#close(stream);
    this.#host.onOutputAdded();
  }

  consumed(stream: H2Stream, octets: number): void {
    const counted = stream.receiveWindow.consume(octets);
    if (!stream.remoteEnded) {
      const increment = stream.receiveWindow.takeIncrement(this.#streamBatch);
      if (increment > 0) {
        writeWindowUpdate(this.#output, stream.id, increment);
        this.#host.onOutputAdded();
      }
    }
    this.#creditConnection(counted);
  }

  onResponseSent(stream: H2Stream): void {
    if (!stream.remoteEnded) {
      // Section 8.1: a complete response before the end of the request; the rest of the request is not wanted.
      writeRstStream(this.#output, stream.id, ERROR_CODE.NO_ERROR);
      this.#resetStreams.add(stream.id, 'us');
      this.#control.earned += CONTROL_FRAMES_PER_REQUEST;
    }
    this.#close(stream);
  }

  #onTrailers(id: number, list: HeaderList, endStream: boolean, selfDependent: boolean): Failure {
    const stream = this.#open.get(id);
    if (stream === undefined) {
      return this.#checkClosed(id) === undefined ? this.#chargeControl() : this.#headersWhenClosed(id);
    }
    if (stream.remoteEnded) return ENDED;
    if (selfDependent) return SELF_DEPENDENT;
    if (!endStream) return OPEN_TRAILERS;
    if (list.tooLarge) return LARGE_TRAILERS;
    if (checkTrailers(list) !== undefined) return MALFORMED;
    if (stream.remainingContentLength > 0) return WRONG_LENGTH;
    stream.remoteEnded = true;
    this.#control.earned += CONTROL_FRAMES_PER_REQUEST;
    this.#handler.onTrailers(stream);
    return undefined;
  }

  /**
   * After END_STREAM in both directions HEADERS end the connection, after the peer's RST_STREAM only the stream
   * (section 5.1, closed).
   */
  #headersWhenClosed(id: number): Failure {
    return this.#resetStreams.resetBy(id) === 'peer' ? ENDED : HEADERS_WHEN_CLOSED;
  }

  /** A frame on a stream that is not in the table. */
  #checkClosed(id: number): Failure {
    if (this.isIdle(id)) return IDLE_STREAM;
    return id > this.#lastAllowedId || this.#resetStreams.resetBy(id) === 'us' ? undefined : ENDED;
  }

  /** Counts a frame that brings no request. */
  #chargeControl(): Failure {
    return this.#control.charge(this.#host.lastReceivedMs);
  }

  #refuseFields(id: number, endStream: boolean): void {
    this.sender.writeHeaders(id, FIELDS_TOO_LARGE, true);
    if (endStream) return;
    writeRstStream(this.#output, id, ERROR_CODE.NO_ERROR);
    this.#resetStreams.add(id, 'us');
  }

  #resume(stream: H2Stream): void {
    if (this.sender.resume(stream) && !stream.closed) this.#handler.onDrained(stream);
  }

  #close(stream: H2Stream): void {
    stream.close();
    this.#open.delete(stream.id);
    this.#headBytes -= stream.headBytes;
    this.sender.discard(stream);
    const { unconsumed } = stream.receiveWindow;
    if (unconsumed > 0) {
      stream.receiveWindow.consume(unconsumed);
      this.#creditConnection(unconsumed);
    }
  }

  /** Octets of the connection's window are consumed; tells the peer once half of the window is owed. */
  #creditConnection(octets: number): void {
    this.window.consume(octets);
    const increment = this.window.takeIncrement(this.#connectionBatch);
    if (increment === 0) return;
    writeWindowUpdate(this.#output, 0, increment);
    this.#host.onOutputAdded();
  }
}
