import { expectState } from '../../invariant.js';
import type { HeaderField } from '../hpack/header-field.js';
import type { RequestHead, ServerConnection, ServerStream } from '../request-handler.js';
import { ReceiveWindow } from './flow-window.js';

/** What the methods of a stream do; the layer above implements it for all streams of a connection. */
export interface StreamOperations {
  sendHeaders(stream: H2Stream, fields: readonly HeaderField[], endStream: boolean): void;
  sendData(stream: H2Stream, bytes: Uint8Array, endStream: boolean): void;
  sendTrailers(stream: H2Stream, fields: readonly HeaderField[]): void;
  sendResponse(
    stream: H2Stream,
    headers: readonly HeaderField[],
    prefix: Uint8Array,
    body: Uint8Array,
    trailers: readonly HeaderField[],
  ): void;
  reset(stream: H2Stream, errorCode: number): void;
  consumed(stream: H2Stream, octets: number): void;
}

/**
 * One stream (RFC 9113 section 5.1). It is made when its request's head is complete and over when both sides have ended
 * or one has reset it:
 *
 *     open                  neither remoteEnded nor localEnded
 *     half-closed (remote)  remoteEnded
 *     closed                over
 *
 * There is no half-closed (local): a response that ends before its request resets the stream (section 8.1).
 */
export class H2Stream implements ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  readonly connection: ServerConnection;
  state: unknown = undefined;
  queuedBytes = 0;

  /** The request has ended. */
  remoteEnded: boolean;
  /** The response's HEADERS were sent. */
  headersSent = false;
  /** The handler has given the end of the response; some of it may still wait for windows. */
  responseEnded = false;
  /** Nothing is received or sent any more. */
  closed = false;

  /** Octets the peer allows us to send; negative after it has made its initial window smaller (section 6.9.2). */
  sendWindow: number;
  readonly receiveWindow: ReceiveWindow;
  /** Octets of body that have still to come by the request's `content-length`; -1 when it gave none. */
  remainingContentLength: number;

  /** Body that waits for windows, oldest first; the first has {@link queueOffset} octets sent. */
  queue: Uint8Array[] | undefined = undefined;
  queueOffset = 0;
  /** Trailers that wait for the body. */
  queuedTrailers: readonly HeaderField[] | undefined = undefined;

  /** Bytes of the head that no stream before has counted. */
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
    this.id = id;
    this.head = head;
    this.connection = connection;
    this.#operations = operations;
    this.remoteEnded = remoteEnded;
    this.remainingContentLength = expectedBytes;
    this.sendWindow = sendWindow;
    this.receiveWindow = new ReceiveWindow(receiveWindow);
  }

  /** See {@link closed}. */
  close(): void {
    expectState(!this.closed, 'a stream ends once');
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

  sendResponse(
    headers: readonly HeaderField[],
    prefix: Uint8Array,
    body: Uint8Array,
    trailers: readonly HeaderField[],
  ): void {
    if (this.closed || this.responseEnded || this.headersSent) return;
    this.#operations.sendResponse(this, headers, prefix, body, trailers);
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
