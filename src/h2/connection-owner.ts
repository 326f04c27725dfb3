/**
 * The operations that the owner of a connection, the server that accepted its socket, uses. Implemented by
 * connection.ts. Our SETTINGS are sent only after the peer's preface, so that an HTTP/1 client gets a readable answer.
 * Every HTTP/2 client sends its preface without waiting (RFC 9113 section 3.4).
 */
export interface OwnedConnection {
  /** Streams that are open or half-closed. */
  readonly openStreams: number;
  /** Time of the last received bytes, in milliseconds on the owner's clock. */
  readonly lastReceivedMs: number;
  /**
   * Memory held for the peer, in bytes: incomplete frames, header blocks and messages, streams, what the handler holds
   * (ServerConnection.addHeldBytes), and responses that wait for flow control windows. Bytes that the sink buffers are
   * not included.
   */
  readonly heldBytes: number;
  /**
   * Processes bytes from the peer, `chunk[from, chunk.length)`. Chunks may end anywhere. The bytes are processed or
   * copied before this method returns, and the responses are sent in one write at its end. Returns the offset at which
   * processing stopped because the work slice is used up; call again with the rest. Returns `chunk.length` if all bytes
   * are processed.
   */
  receive(chunk: Buffer, from?: number): number;
  /**
   * Passes all pending output to the sink. Output that is produced outside of {@link receive} is announced by
   * {@link ConnectionEvents.onOutput}.
   */
  flush(): void;
  /** Sends a PING for keep-alive. {@link ConnectionEvents.onPingAck} reports the answer. */
  ping(): void;
  /**
   * Shuts down gracefully (RFC 9113 section 6.8). Sends a GOAWAY with the highest possible stream id and a PING. Once
   * the PING is acknowledged, sends a second GOAWAY with the id of the last stream that is served, and refuses later
   * streams. Closes the sink when no stream is open.
   */
  closeGracefully(): void;
  /** Sends GOAWAY with `errorCode` and the text `debug`, and closes the connection even if streams are open. */
  terminate(errorCode: number, debug: string): void;
  /**
   * Ends the streams after the socket has closed: nothing more is sent, and at most `maxStreams` streams are reset, or
   * all if it is absent. Call it again while {@link openStreams} is above 0.
   */
  resetStreams(maxStreams?: number): void;
}

/** Events that a connection reports to its owner. */
export interface ConnectionEvents {
  /**
   * Output waits for {@link OwnedConnection.flush}. Called once until the next flush. Called from within methods of
   * streams, so schedule the flush instead of calling it here.
   */
  onOutput(connection: OwnedConnection): void;
  /** The peer has sent the HTTP/2 preface and SETTINGS. */
  onEstablished(connection: OwnedConnection): void;
  /** The peer has acknowledged a PING of {@link OwnedConnection.ping}. */
  onPingAck(connection: OwnedConnection): void;
  /**
   * The connection closes itself because the peer violated the protocol or a limit. `error` is text for the log.
   * `established` is false if the peer never sent SETTINGS.
   */
  onProtocolError(connection: OwnedConnection, error: string, established: boolean): void;
}

/** The destination of a connection's output: a socket in production, an array in tests. */
export interface ByteSink {
  /**
   * Takes ownership of `bytes`: the connection does not change them again. If the peer does not read fast enough, the
   * sink buffers the bytes and `bufferedBytes` counts them.
   */
  write(bytes: Buffer): void;
  /** Bytes that are written but not yet passed to the operating system. */
  readonly bufferedBytes: number;
  /** Closes the connection after all written bytes are sent. */
  end(): void;
  /** Closes the connection immediately. */
  destroy(): void;
}
