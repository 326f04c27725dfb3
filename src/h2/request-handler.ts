import type { HeaderField } from './hpack/header-field.js';

/**
 * The head of a request: pseudo-header fields and header fields, validated by RFC 9113 section 8. Immutable. Streams
 * whose header blocks have the same bytes may share one object, so values that are computed from it can be cached.
 */
export interface RequestHead {
  readonly method: string;
  readonly scheme: string;
  readonly path: string;
  /** `:authority`, or undefined if it is absent. `fields` then contains a `host` field. */
  readonly authority: string | undefined;
  /**
   * The other fields, in the order received, alternating names and values. Names are lowercase; values have one
   * character for each byte.
   */
  readonly fields: readonly string[];
}

/** Writes the body of one response. The engine calls {@link writeBefore} at most once, with enough space. */
export interface BodyWriter {
  /** Upper bound of the body's length, in bytes. */
  readonly maxLength: number;
  /** Writes the body so that it ends before `bytes[end]`. Returns the offset of its first byte. */
  writeBefore(bytes: Uint8Array, end: number): number;
}

/**
 * One request and its response, as seen by the protocol on top of HTTP/2. The methods do nothing once the stream is
 * closed.
 */
export interface ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  readonly connection: ServerConnection;
  /** State that the {@link RequestHandler} keeps for this stream. The engine does not use it. */
  state: unknown;
  /** Bytes passed to {@link sendData} that wait for the peer's flow control window. */
  readonly queuedBytes: number;
  /** Sends the HEADERS of the response. With `endStream`, they end the response. */
  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void;
  /**
   * Copies body bytes, and sends as many of them in DATA frames as the windows allow. The rest waits for WINDOW_UPDATE.
   */
  sendData(bytes: Uint8Array, endStream: boolean): void;
  /** Sends trailers after all data, and ends the response. */
  sendTrailers(fields: readonly HeaderField[]): void;
  /**
   * Sends headers, a body, and trailers: {@link sendHeaders}, {@link sendData} and {@link sendTrailers} in one call.
   * The body is written before this method returns, straight into the output of the connection if the windows allow
   * it. The hot path of a unary response, with lists that recur.
   */
  sendResponse(headers: readonly HeaderField[], body: BodyWriter, trailers: readonly HeaderField[]): void;
  /** Ends the stream with RST_STREAM. */
  reset(errorCode: number): void;
  /**
   * Returns flow control credit for `bytes` of this stream's body to the peer. Unconsumed bytes limit how much the peer
   * may send.
   */
  consumed(bytes: number): void;
}

/** One HTTP/2 connection, as seen by the protocol on top of it. */
export interface ServerConnection {
  /** The peer's address as `host:port`, or the path of the Unix domain socket. For logs. */
  readonly peer: string;
  /** Time at which the current chunk was received, in milliseconds, on a clock that never goes back. */
  readonly lastReceivedMs: number;
  /** Streams that are open or half-closed. */
  readonly openStreams: number;
  /** Received body bytes, over all streams, that are not {@link ServerStream.consumed} yet. */
  readonly unconsumedBytes: number;
  /**
   * Adds `bytes` to what the handler holds for this connection, or subtracts them if negative. All connections share a
   * memory limit; when it is exceeded, the connection that holds most is closed.
   */
  addHeldBytes(bytes: number): void;
}

/**
 * The protocol on top of the engine. Every method is called while a chunk is read or from a timer, never from within a
 * method of {@link ServerStream}. None may throw.
 */
export interface RequestHandler {
  /** Handles a complete request head. With `endStream`, the request has no body. */
  onRequest(stream: ServerStream, endStream: boolean): void;
  /**
   * Handles body bytes, `chunk[start, end)`, which are valid only during the call. Padding is not included and is
   * already consumed. With `endStream`, the body is complete, and `start` may equal `end`.
   */
  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void;
  /** Handles trailers, which end the request. */
  onTrailers(stream: ServerStream): void;
  /** Called when {@link ServerStream.queuedBytes} falls to 0. */
  onDrained(stream: ServerStream): void;
  /**
   * Called when the stream ends before the response is complete: by RST_STREAM from the peer, a stream error, or the
   * end of the connection. Also called if the handler has passed on the whole response but part of it still waited for
   * windows. Not called after {@link ServerStream.reset} by the handler.
   */
  onReset(stream: ServerStream, errorCode: number): void;
  /**
   * Called when the peer resets a stream that is already closed. The peer may have sent the RST_STREAM before it
   * received the end of the response.
   */
  onLateReset?(connection: ServerConnection, streamId: number): void;
}
