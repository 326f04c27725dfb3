/** Where a connection's bytes go; a socket in production, an array in tests. */
export interface ByteSink {
  /**
   * Takes over `bytes`: the connection does not touch them again. When the peer does not keep up the sink holds them,
   * and `bufferedBytes` says how many.
   */
  write(bytes: Buffer): void;
  /** Bytes taken and not yet handed to the operating system. */
  readonly bufferedBytes: number;
  /** Ends the connection once everything written is sent. */
  end(): void;
  /** Ends it at once. */
  destroy(): void;
}
