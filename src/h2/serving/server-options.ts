import type { H2Limits } from '../limits.js';
import type { TlsOptions } from '../tls-material.js';

/** Limits, lifetimes and surroundings of an H2Server. */
export interface H2ServerOptions {
  readonly limits: H2Limits;
  /** Serve TLS (ALPN h2) instead of clear text (prior knowledge, RFC 9113 section 3.3). */
  readonly tls?: TlsOptions | undefined;
  /**
   * A connection older than this gets a GOAWAY; each has its own age, up to a tenth more or less. Infinity: never.
   * Milliseconds.
   */
  readonly maxConnectionAgeMs: number;
  /** How long streams may go on after that GOAWAY. Milliseconds. */
  readonly maxConnectionAgeGraceMs: number;
  /** A connection silent for this long is sent a PING; Infinity: never. Milliseconds. */
  readonly keepAliveIntervalMs: number;
  /** No sign of life within this time after that PING ends the connection. Milliseconds. */
  readonly keepAliveTimeoutMs: number;
  /**
   * Longest time for a TLS handshake, and again until the peer's SETTINGS (RFC 9113 section 3.4) came. Milliseconds.
   */
  readonly handshakeTimeoutMs: number;
  /** Connections at a time, those in a TLS handshake included; one more is closed at once. */
  readonly maxConnections: number;
  /** What all connections together may hold; beyond it the one that holds most is ended. Bytes. */
  readonly maxBufferedBytes: number;
  /** A clock that never steps back. Milliseconds. */
  nowMs(): number;
  /** From 0 to below 1, for the jitter of ages. */
  random(): number;
  /**
   * Told of failures to accept, such as too many open files, and of mistakes of ours that cost a connection; serving
   * goes on.
   */
  onError(error: unknown): void;
  /** Told, in a sentence, of each connection that does not begin as HTTP/2 or breaks its rules. */
  onBadConnection(message: string): void;
}
