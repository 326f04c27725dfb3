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
