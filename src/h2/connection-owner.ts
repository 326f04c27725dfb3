/**
 * What a connection's owner (the server that accepted its socket) does with it. Implemented by connection.ts. Our
 * SETTINGS leave once the peer's preface is there, so that an HTTP/1 client gets a readable answer; every HTTP/2 client
 * sends its preface without waiting (RFC 9113 section 3.4).
 */
export interface OwnedConnection {
  /** Streams that are open or half-closed. */
  readonly openStreams: number;
  /** Milliseconds on the owner's clock at which bytes last came. */
  readonly lastReceivedMs: number;
  /**
   * Memory that is held for the peer: what came and is no whole frame, header block or message yet, streams, what the
   * handler holds (ServerConnection.hold), answers that wait for windows. What the sink holds is not in it. Bytes.
   */
  readonly heldBytes: number;
  /**
   * Takes bytes of the peer, cut anywhere, `chunk[from, chunk.length)`; they are read or copied before it returns.
   * Answers given meanwhile leave in one write at its end. Returns where it has stopped at the end of its unit of work:
   * the rest has to come again. `chunk.length` when nothing is left.
   */
  receive(chunk: Buffer, from?: number): number;
  /**
   * Hands all output so far to the sink. Output made outside of {@link receive} is announced by
   * {@link ConnectionEvents.onOutput}.
   */
  flush(): void;
  /** Sends a PING for keep-alive; `onAck` of {@link ConnectionEvents} tells of its answer. */
  ping(): void;
  /**
   * Graceful end (RFC 9113 section 6.8): GOAWAY that names the highest possible stream, then, once a PING tells that
   * the peer has read it, one that names the last stream served; later streams are refused. Ends the sink when no
   * stream is left.
   */
  closeGracefully(): void;
  /** GOAWAY with `errorCode` and `debug` text, then the end, whatever runs. */
  terminate(errorCode: number, debug: string): void;
  /**
   * The socket is gone: nothing is sent any more, and streams are reset, `most` of them at most, all when it is absent.
   * As long as some are {@link openStreams open} it has to be called again.
   */
  resetStreams(maxStreams?: number): void;
}

/** What a connection tells its owner. */
export interface ConnectionEvents {
  /**
   * Output waits for {@link OwnedConnection.flush}; told once until then. It is told from inside the methods of
   * streams, so flush later, not from here.
   */
  onOutput(connection: OwnedConnection): void;
  /** The first bytes were HTTP/2 and SETTINGS came: the connection counts. */
  onEstablished(connection: OwnedConnection): void;
  /** A PING of {@link OwnedConnection.ping} was answered. */
  onPingAck(connection: OwnedConnection): void;
  /**
   * The connection ends itself: a breach of protocol or limits by the peer. `error` for the log, in words; `greeted` is
   * false when the peer never spoke HTTP/2.
   */
  onProtocolError(connection: OwnedConnection, error: string, established: boolean): void;
}
