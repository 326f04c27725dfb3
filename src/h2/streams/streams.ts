import { Budget, CONTROL_FRAMES_PER_REQUEST, type ControlBudget } from '../control-budget.js';
import { ConnectionFailure, ERROR_CODE, type Failure, StreamFailure } from '../failure.js';
import { HEAD_WORK, REQUEST_WORK, type ReadQuantum } from '../frame-reader.js';
import { INITIAL_WINDOW_BYTES, type OutputBuffer, writeRstStream, writeWindowUpdate } from '../frames.js';
import { HeaderField, type HeaderList } from '../hpack/header-field.js';
import type { H2Limits } from '../limits.js';
import type { BodyWriter, RequestHandler, ServerConnection } from '../request-handler.js';
import { type CheckedHead, checkTrailers, MalformedHead, requestHead } from '../request-head.js';
import { type ResponseEvents, ResponseSender } from './response-sender.js';
import { H2Stream, overflowsWindow, ReceiveWindow, type StreamOperations } from './stream.js';

const { PROTOCOL_ERROR, STREAM_CLOSED, FLOW_CONTROL_ERROR, ENHANCE_YOUR_CALM, REFUSED_STREAM } = ERROR_CODE;

// Violations of stream rules by the peer, which end the connection or one stream.

const TOO_MANY_RESETS = new ConnectionFailure(ENHANCE_YOUR_CALM, 'the peer reset too many streams');
const DATA_BEYOND_WINDOW = new ConnectionFailure(
  FLOW_CONTROL_ERROR,
  'the peer sent more DATA than the connection window allows',
);
const WINDOW_OVERFLOW = new ConnectionFailure(
  FLOW_CONTROL_ERROR,
  'the peer made the connection window larger than 2^31-1',
);
const SETTINGS_OVERFLOW = new ConnectionFailure(
  FLOW_CONTROL_ERROR,
  'SETTINGS_INITIAL_WINDOW_SIZE made a stream window larger than 2^31-1',
);
const HEADERS_WHEN_CLOSED = new ConnectionFailure(STREAM_CLOSED, 'the peer sent HEADERS on a closed stream');
const IDLE_STREAM = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent a frame on a stream that it never opened',
);

const REFUSED = new StreamFailure(REFUSED_STREAM, 'the peer opened more streams than allowed');
const ENDED = new StreamFailure(STREAM_CLOSED, 'the peer sent a frame on a stream that it had ended');
const SELF_DEPENDENT = new StreamFailure(PROTOCOL_ERROR, 'the peer made a stream depend on itself');
const MALFORMED = new StreamFailure(PROTOCOL_ERROR, 'the peer sent a malformed request');
const OPEN_TRAILERS = new StreamFailure(PROTOCOL_ERROR, 'the peer sent trailers that do not end the stream');
const LARGE_TRAILERS = new StreamFailure(
  ENHANCE_YOUR_CALM,
  'the peer sent trailers that are larger than allowed',
);
const WRONG_LENGTH = new StreamFailure(
  PROTOCOL_ERROR,
  'the peer sent a body whose length differs from content-length',
);
const STREAM_BEYOND_WINDOW = new StreamFailure(
  FLOW_CONTROL_ERROR,
  'the peer sent more DATA than the stream window allows',
);
const STREAM_OVERFLOW = new StreamFailure(
  FLOW_CONTROL_ERROR,
  'the peer made a stream window larger than 2^31-1',
);

/** The services that streams require from their connection. */
export interface StreamsHost extends ServerConnection {
  /** The read quantum in progress. */
  readonly readQuantum: ReadQuantum;
  /** Reports that the output has grown or that data waits for windows. */
  onOutputAdded(): void;
}

/** Memory of an open stream and its handler state in V8's heap, in bytes, without the request head. */
const STREAM_BYTES = 1024;

/** The response to a header list that exceeds SETTINGS_MAX_HEADER_LIST_SIZE (RFC 6585 section 5). */
const FIELDS_TOO_LARGE = [new HeaderField(':status', '431')];

/** The streams of a connection. Processes frames of the peer and operations of the handler. */
export class Streams implements StreamOperations, ResponseEvents {
  readonly sender: ResponseSender;
  /** The connection's window for received data. */
  readonly window: ReceiveWindow;
  /** Highest stream id that the peer has opened. All higher streams are idle. */
  highestId = 0;
  readonly #open = new OpenStreams();
  readonly #resetStreams: ResetStreams;
  readonly #resets: Budget;
  readonly #host: StreamsHost;
  readonly #handler: RequestHandler;
  readonly #limits: H2Limits;
  readonly #control: ControlBudget;
  readonly #output: OutputBuffer;
  /** Receive window of new streams. At least the default until the peer has acknowledged our SETTINGS. */
  #receiveWindowBytes: number;
  /** Send window of new streams. */
  #sendWindowBytes = INITIAL_WINDOW_BYTES;
  /** Streams with higher ids are ignored, as announced by the last GOAWAY. */
  #lastAllowedId = Number.POSITIVE_INFINITY;
  /** The previous request head, and its list. The next one is probably the same, or similar. */
  #lastHead: CheckedHead | undefined = undefined;
  #lastList: HeaderList | undefined = undefined;
  /** Bytes of the header lists of open streams, counting shared lists once. */
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

  /** Memory in bytes of streams, of unconsumed data, and of responses that wait for windows. */
  get heldBytes(): number {
    return STREAM_BYTES * this.size + this.#headBytes + this.window.unconsumed + this.sender.queuedBytes;
  }

  /**
   * Returns whether a stream was never opened, so that only HEADERS and PRIORITY may name it (RFC 9113 section 5.1).
   */
  isIdle(id: number): boolean {
    return id > this.highestId || (id & 1) === 0;
  }

  /** Id of the last stream that was or may have been processed, for GOAWAY (RFC 9113 section 6.8). */
  get lastServedId(): number {
    return Math.min(this.highestId, this.#lastAllowedId);
  }

  /** Ignores streams after {@link lastServedId} from now on. */
  refuseNewStreams(): void {
    this.#lastAllowedId = this.lastServedId;
  }

  /** Handles a complete header block: a new request or, on an open stream, trailers. `id` is odd. */
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
    let head = this.#lastHead;
    let headBytes = 0;
    if (head === undefined || list !== this.#lastList) {
      const next = requestHead(list, head);
      if (next instanceof MalformedHead) return MALFORMED;
      if (next !== head) headBytes = list.size;
      head = next;
      this.#lastHead = head;
      this.#lastList = list;
    }
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
    this.#host.readQuantum.remaining -= endStream ? REQUEST_WORK : HEAD_WORK;
    this.#open.add(stream);
    this.#handler.onRequest(stream, endStream);
    return undefined;
  }

  /** Handles a DATA frame with a payload of `length` octets and the body `chunk[start, end)`. `id` is not 0. */
  onData(id: number, length: number, chunk: Buffer, start: number, end: number, endStream: boolean): Failure {
    if (!this.window.receive(length)) return DATA_BEYOND_WINDOW;
    const stream = this.#open.get(id);
    if (stream === undefined || stream.remoteEnded) {
      this.#creditConnection(length);
      if (stream !== undefined) return ENDED;
      return this.#checkClosed(id) ?? (start === end ? this.#chargeControl() : undefined);
    }
    if (!stream.receive(length)) {
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
      this.#host.readQuantum.remaining -= REQUEST_WORK;
    }
    this.#handler.onData(stream, chunk, start, end, endStream);
    return undefined;
  }

  /** Handles RST_STREAM. `id` is not idle. */
  onRstStream(id: number, errorCode: number): Failure {
    const stream = this.#open.get(id);
    if (stream === undefined) {
      this.#handler.onLateReset?.(this.#host, id);
      return this.#chargeControl();
    }
    this.#resetStreams.add(id, 'peer');
    this.#close(stream);
    this.#handler.onReset(stream, errorCode);
    return this.#resets.take(this.#host.lastReceivedMs) ? undefined : TOO_MANY_RESETS;
  }

  /** Handles WINDOW_UPDATE, which is ignored on a closed stream (RFC 9113 section 6.9). `id` is not idle. */
  onStreamWindow(id: number, increment: number): Failure {
    const stream = this.#open.get(id);
    if (stream === undefined) return undefined;
    if (overflowsWindow(stream.sendWindow, increment)) return STREAM_OVERFLOW;
    stream.sendWindow += increment;
    this.#resume(stream);
    return undefined;
  }

  /** Handles WINDOW_UPDATE of the connection. */
  onConnectionWindow(increment: number): Failure {
    const { sender } = this;
    if (overflowsWindow(sender.window, increment)) return WINDOW_OVERFLOW;
    sender.window += increment;
    for (let stream = sender.nextWaiting(); stream !== undefined; stream = sender.nextWaiting()) {
      this.#resume(stream);
    }
    return undefined;
  }

  /** Applies SETTINGS_INITIAL_WINDOW_SIZE of the peer to all streams (RFC 9113 section 6.9.2). */
  setSendWindow(size: number): Failure {
    const difference = size - this.#sendWindowBytes;
    this.#sendWindowBytes = size;
    if (difference === 0) return undefined;
    const streams = this.#open.oldestFirst();
    for (const stream of streams) {
      if (overflowsWindow(stream.sendWindow, difference)) return SETTINGS_OVERFLOW;
      stream.sendWindow += difference;
    }
    if (difference < 0) return undefined;
    for (const stream of streams) {
      if (!stream.closed && stream.sendWindow > 0) this.#resume(stream);
    }
    return undefined;
  }

  /** The peer has read our SETTINGS: new streams get the configured window, even if the default is larger. */
  onSettingsAck(): void {
    this.#receiveWindowBytes = this.#limits.streamWindowBytes;
  }

  /**
   * Resets the stream that caused a {@link StreamFailure}, which counts like a reset by the peer. An idle stream cannot
   * be reset (RFC 9113 section 5.1), so its failure ends the connection.
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

  /** Closes at most `maxStreams` streams, oldest first, after the connection has ended. Notifies the handler. */
  resetAll(errorCode: number, maxStreams: number = Number.POSITIVE_INFINITY): void {
    let left = maxStreams;
    for (const stream of this.#open.oldestFirst()) {
      if (left-- <= 0) return;
      // The handler may close other streams.
      if (stream.closed) continue;
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
    body: BodyWriter,
    trailers: readonly HeaderField[],
  ): void {
    this.sender.sendResponse(stream, headers, body, trailers);
    this.#host.onOutputAdded();
  }

  reset(stream: H2Stream, errorCode: number): void {
    writeRstStream(this.#output, stream.id, errorCode);
    this.#resetStreams.add(stream.id, 'us');
    this.#close(stream);
    this.#host.onOutputAdded();
  }

  consumed(stream: H2Stream, octets: number): void {
    const counted = stream.consume(octets);
    if (!stream.remoteEnded) {
      const increment = stream.takeIncrement(this.#streamBatch);
      if (increment > 0) {
        writeWindowUpdate(this.#output, stream.id, increment);
        this.#host.onOutputAdded();
      }
    }
    this.#creditConnection(counted);
  }

  onResponseSent(stream: H2Stream): void {
    if (!stream.remoteEnded) {
      // RFC 9113 section 8.1: the response is complete before the request, so the rest of the request is refused.
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

  /** HEADERS on a closed stream end the connection, or only the stream if the peer reset it (RFC 9113 section 5.1). */
  #headersWhenClosed(id: number): Failure {
    return this.#resetStreams.resetBy(id) === 'peer' ? ENDED : HEADERS_WHEN_CLOSED;
  }

  /** Checks a frame on a stream that is not in the table. */
  #checkClosed(id: number): Failure {
    if (this.isIdle(id)) return IDLE_STREAM;
    return id > this.#lastAllowedId || this.#resetStreams.resetBy(id) === 'us' ? undefined : ENDED;
  }

  /** Counts a frame that carries no request. */
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
    this.#open.delete(stream);
    this.#headBytes -= stream.headBytes;
    this.sender.discard(stream);
    const { unconsumed } = stream;
    if (unconsumed > 0) {
      stream.consume(unconsumed);
      this.#creditConnection(unconsumed);
    }
  }

  /** Consumes octets of the connection's window, and sends a WINDOW_UPDATE for each half of the window. */
  #creditConnection(octets: number): void {
    this.window.consume(octets);
    const increment = this.window.takeIncrement(this.#connectionBatch);
    if (increment === 0) return;
    writeWindowUpdate(this.#output, 0, increment);
    this.#host.onOutputAdded();
  }
}

/** Number of {@link OpenStreams}' slots, a power of two: as many streams as proxies usually open at a time. */
const SLOTS = 128;

/**
 * The open streams of a connection by their ids. The ids of a client rise, so the streams that are open at a time are
 * in different slots of an array, which is cheaper than a Map that grows and shrinks all the time. Streams that stay
 * open for long meet later ones in their slot; those are in a Map.
 */
class OpenStreams {
  size = 0;
  readonly #slots: (H2Stream | undefined)[] = [];
  readonly #others = new Map<number, H2Stream>();

  get(id: number): H2Stream | undefined {
    const stream = this.#slots[slotOf(id)];
    if (stream !== undefined && stream.id === id) return stream;
    return this.#others.size === 0 ? undefined : this.#others.get(id);
  }

  /** Adds a stream whose id is not in the table. */
  add(stream: H2Stream): void {
    const slots = this.#slots;
    while (slots.length < SLOTS) slots.push(undefined);
    const slot = slotOf(stream.id);
    if (slots[slot] === undefined) slots[slot] = stream;
    else this.#others.set(stream.id, stream);
    this.size++;
  }

  /** Removes a stream that is in the table. */
  delete(stream: H2Stream): void {
    const slot = slotOf(stream.id);
    if (this.#slots[slot] === stream) this.#slots[slot] = undefined;
    else this.#others.delete(stream.id);
    this.size--;
  }

  /** Returns the streams that are open now, by their ids. */
  oldestFirst(): readonly H2Stream[] {
    const streams = [...this.#others.values()];
    for (const stream of this.#slots) if (stream !== undefined) streams.push(stream);
    return streams.sort((a, b) => a.id - b.id);
  }
}

function slotOf(id: number): number {
  return (id >>> 1) & (SLOTS - 1);
}

/** The side that ended a stream with RST_STREAM. `none`: neither, or it is no longer remembered. */
type ResetBy = 'us' | 'peer' | 'none';

/**
 * Remembers the streams that were reset last. Frames that the peer sent before it saw our RST_STREAM must be ignored;
 * frames that it sends after its own RST_STREAM are an error (RFC 9113 section 5.1, closed). The number is limited, and
 * the oldest streams are forgotten first.
 */
class ResetStreams {
  readonly #by = new Map<number, 'us' | 'peer'>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(streamId: number, by: 'us' | 'peer'): void {
    if (this.#by.size >= this.#capacity) {
      for (const oldest of this.#by.keys()) {
        this.#by.delete(oldest);
        break;
      }
    }
    this.#by.set(streamId, by);
  }

  resetBy(streamId: number): ResetBy {
    return this.#by.get(streamId) ?? 'none';
  }
}
