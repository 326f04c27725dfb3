import { checkInvariant, invariant } from '../../runtime/invariant.js';
import { MAX_WINDOW_BYTES } from '../frames.js';
import type { HeaderField } from '../hpack/header-field.js';
import type { BodyWriter, RequestHead, ServerConnection, ServerStream } from '../request-handler.js';

/** The operations of a stream, implemented once for all streams of a connection. */
export interface StreamOperations {
  sendHeaders(stream: H2Stream, fields: readonly HeaderField[], endStream: boolean): void;
  sendData(stream: H2Stream, bytes: Uint8Array, endStream: boolean): void;
  sendTrailers(stream: H2Stream, fields: readonly HeaderField[]): void;
  sendResponse(
    stream: H2Stream,
    headers: readonly HeaderField[],
    body: BodyWriter,
    trailers: readonly HeaderField[],
  ): void;
  reset(stream: H2Stream, errorCode: number): void;
  consumed(stream: H2Stream, octets: number): void;
}

/**
 * A window for data that the peer sends. {@link available} is what the peer may still send. Received octets are
 * unconsumed until they are consumed, and then part of the pending increment until a WINDOW_UPDATE returns them. The
 * three values add up to the size of the window.
 */
export class ReceiveWindow {
  available: number;
  unconsumed = 0;
  pendingIncrement = 0;

  constructor(size: number) {
    this.available = size;
  }

  /** Counts received octets. Returns false, without counting, if the peer exceeded the window. */
  receive(octets: number): boolean {
    if (octets > this.available) return false;
    this.available -= octets;
    this.unconsumed += octets;
    invariant(this.available >= 0, 'a peer sends no more than its window allows');
    return true;
  }

  /** Marks received octets as consumed. Returns how many were counted, at most the unconsumed ones. */
  consume(octets: number): number {
    const counted = Math.min(octets, this.unconsumed);
    this.unconsumed -= counted;
    this.pendingIncrement += counted;
    return counted;
  }

  /** Returns the increment to send in a WINDOW_UPDATE, at least `batch` octets, or 0. The caller must send it. */
  takeIncrement(batch: number): number {
    const increment = this.pendingIncrement;
    if (increment < batch || increment === 0) return 0;
    this.pendingIncrement = 0;
    this.available += increment;
    invariant(this.available <= MAX_WINDOW_BYTES, 'a window is no larger than 2^31-1');
    return increment;
  }
}

/**
 * One stream (RFC 9113 section 5.1). It is created when the head of its request is complete. It closes when both sides
 * have ended it or one side has reset it:
 *
 *     open                  neither remoteEnded nor responseEnded
 *     half-closed (remote)  remoteEnded
 *     closed                closed
 *
 * The state half-closed (local) does not occur: a response that ends before its request resets the stream (section
 * 8.1).
 *
 * The stream is also its own receive window, because a separate object for each stream costs time.
 */
export class H2Stream extends ReceiveWindow implements ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  readonly connection: ServerConnection;
  state: unknown = undefined;
  queuedBytes = 0;

  /** Whether the request has ended. */
  remoteEnded: boolean;
  /** Whether the HEADERS of the response were sent. */
  headersSent = false;
  /**
   * Whether the handler has ended the response. Part of the response may still wait until the flow-control windows
   * allow it to be sent.
   */
  responseEnded = false;
  /** Whether the stream is closed: nothing is received or sent any more. */
  closed = false;

  /**
   * Octets that the peer allows us to send. Negative after the peer has reduced its initial window (section 6.9.2).
   */
  sendWindow: number;
  /** Octets of body that `content-length` still announces, or -1 if it is absent. */
  remainingContentLength: number;

  /**
   * Body parts that wait for flow-control windows, oldest first. {@link queueOffset} octets of the first part are sent.
   */
  queue: Uint8Array[] | undefined = undefined;
  queueOffset = 0;
  /** Trailers that wait for the end of the body. */
  queuedTrailers: readonly HeaderField[] | undefined = undefined;

  /** Bytes of the request head, if no other stream shares it. */
  headBytes = 0;

  readonly #operations: StreamOperations;

  constructor(
    id: number,
    head: RequestHead,
    connection: ServerConnection,
    operations: StreamOperations,
    remoteEnded: boolean,
    expectedBytes: number,
    sendWindow: number,
    receiveWindow: number,
  ) {
    super(receiveWindow);
    this.id = id;
    this.head = head;
    this.connection = connection;
    this.#operations = operations;
    this.remoteEnded = remoteEnded;
    this.remainingContentLength = expectedBytes;
    this.sendWindow = sendWindow;
  }

  /** Marks the stream as {@link closed}. */
  close(): void {
    checkInvariant(!this.closed, 'a stream ends only once');
    this.closed = true;
  }

  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void {
    if (this.closed || this.responseEnded || this.headersSent) return;
    this.#operations.sendHeaders(this, fields, endStream);
  }

  sendData(bytes: Uint8Array, endStream: boolean): void {
    if (this.closed || this.responseEnded || !this.headersSent) return;
    this.#operations.sendData(this, bytes, endStream);
  }

  sendTrailers(fields: readonly HeaderField[]): void {
    if (this.closed || this.responseEnded || !this.headersSent) return;
    this.#operations.sendTrailers(this, fields);
  }

  sendResponse(headers: readonly HeaderField[], body: BodyWriter, trailers: readonly HeaderField[]): void {
    if (this.closed || this.responseEnded || this.headersSent) return;
    this.#operations.sendResponse(this, headers, body, trailers);
  }

  reset(errorCode: number): void {
    if (this.closed) return;
    this.#operations.reset(this, errorCode);
  }

  consumed(bytes: number): void {
    if (this.closed || bytes <= 0) return;
    this.#operations.consumed(this, bytes);
  }
}

/**
 * Returns whether `increment` octets would make `window` too large: "A sender MUST NOT allow a flow-control window to
 * exceed 2^31-1 octets" (RFC 9113 section 6.9.1). Windows and increments are below 2^31, so the sum is exact. A window
 * may be negative (section 6.9.2).
 */
export function overflowsWindow(window: number, increment: number): boolean {
  return window + increment > MAX_WINDOW_BYTES;
}

/** Returns the number of octets that two windows allow to send. Either window may be negative. */
export function sendable(streamWindow: number, connectionWindow: number): number {
  return Math.max(0, Math.min(streamWindow, connectionWindow));
}
