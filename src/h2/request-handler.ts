import type { HeaderField } from './hpack/header-field.js';

/**
 * The head of a request: pseudo-header fields and header fields, checked by RFC 9113 section 8. Immutable; one object
 * may serve many streams whose header blocks were the same bytes, so what is computed from it can be kept beside it.
 */
export interface RequestHead {
  readonly method: string;
  readonly scheme: string;
  readonly path: string;
  /** `:authority`; undefined when absent (a `host` field then stands in `fields`). */
  readonly authority: string | undefined;
  /**
   * The other fields, name and value by turns, in the order they came. Names are lower case; values hold one character
   * per byte.
   */
  readonly fields: readonly string[];
}

/**
 * One request and its response, as the protocol on top of HTTP/2 sees it. Methods of a stream that is over do nothing.
 */
export interface ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  readonly connection: ServerConnection;
  /** Whatever the {@link RequestHandler} keeps about this stream. The engine does not look at it. */
  state: unknown;
  /** Bytes of {@link sendData} that wait for the peer's flow control window. */
  readonly queuedBytes: number;
  /** Sends the response's HEADERS. `endStream` ends it with them. */
  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void;
  /** Sends body bytes, copied, in DATA frames as far as the windows allow; the rest waits for WINDOW_UPDATE. */
  sendData(bytes: Uint8Array, endStream: boolean): void;
  /** Sends trailers, after all data, and ends the response. */
  sendTrailers(fields: readonly HeaderField[]): void;
  /**
   * Headers, a body of `prefix` and `body`, trailers: {@link sendHeaders}, {@link sendData} and {@link sendTrailers} in
   * one go, without intermediate copies where the windows have room. The hot path of a unary answer. Both are copied
   * before it returns.
   */
  sendResponse(
    headers: readonly HeaderField[],
    prefix: Uint8Array,
    body: Uint8Array,
    trailers: readonly HeaderField[],
  ): void;
  /** Ends the stream with RST_STREAM. */
  reset(errorCode: number): void;
  /**
   * Gives the peer flow control credit for `bytes` of this stream's body. What is not consumed bounds what the peer may
   * send.
   */
  consumed(bytes: number): void;
}

/** One HTTP/2 connection, as the protocol on top of it sees it. */
export interface ServerConnection {
  /** The peer's address as `host:port`, or the path of the socket; for logs. */
  readonly peer: string;
  /** Streams that are open or half-closed. */
  readonly openStreams: number;
  /** Received body bytes that were not {@link ServerStream.consumed} yet, over all streams. */
  readonly unconsumedBytes: number;
  /**
   * The handler holds `bytes` more for this connection, or less where they are negative. Connections are bounded
   * together; the one that holds most is ended when it is too much.
   */
  addHeldBytes(bytes: number): void;
}

/**
 * What runs on top of the engine. Every method is called from inside the reading of a chunk or a timer, never from
 * inside a method of {@link ServerStream}; none may throw.
 */
export interface RequestHandler {
  /** A request's head is complete. `endStream`: it has no body. */
  onRequest(stream: ServerStream, endStream: boolean): void;
  /**
   * Body bytes, `chunk[start, end)`, only valid during the call; padding is not among them, but counts as consumed
   * already. `endStream`: the body is complete (then `start` may equal `end`).
   */
  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void;
  /** The request ended with trailers. */
  onTrailers(stream: ServerStream): void;
  /** {@link ServerStream.queuedBytes} fell to 0 after it was not. */
  onDrained(stream: ServerStream): void;
  /**
   * The stream is over before the response was complete, by the peer's RST_STREAM, a stream error, or the end of the
   * connection. Also when the handler has given all of the response, but some of it still waited for windows; not after
   * its own {@link ServerStream.reset}.
   */
  onReset(stream: ServerStream, errorCode: number): void;
}
