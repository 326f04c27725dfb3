import type { H2Limits } from '../limits.js';
import type { TlsOptions } from '../tls-material.js';

/** Limits, timeouts and dependencies of an H2Server. */
export interface H2ServerOptions {
  readonly limits: H2Limits;
  /** TLS configuration (ALPN h2). If absent, the server uses cleartext with prior knowledge (RFC 9113 section 3.3). */
  readonly tls?: TlsOptions | undefined;
  /**
   * Maximum age of a connection in milliseconds, after which it is sent a GOAWAY. A jitter of up to a tenth is applied
   * to each connection. Infinity: no maximum.
   */
  readonly maxConnectionAgeMs: number;
  /** Time in milliseconds for which streams may continue after that GOAWAY. */
  readonly maxConnectionAgeGraceMs: number;
  /** Idle time in milliseconds after which a connection is sent a PING. Infinity: never. */
  readonly keepAliveIntervalMs: number;
  /** Time in milliseconds after that PING at which the connection is closed if nothing was received. */
  readonly keepAliveTimeoutMs: number;
  /** Timeout in milliseconds for the TLS handshake, and again for the peer's SETTINGS (RFC 9113 section 3.4). */
  readonly handshakeTimeoutMs: number;
  /**
   * Maximum number of open connections, including those in a TLS handshake. Further connections are closed immediately.
   */
  readonly maxConnections: number;
  /**
   * Maximum total memory of all connections, in bytes. When it is exceeded, the connection that uses the most memory is
   * closed.
   */
  readonly maxBufferedBytes: number;
  /** Returns milliseconds on a clock that never goes back. */
  nowMs(): number;
  /** Returns a random number from 0 to below 1, for the jitter of connection ages. */
  random(): number;
  /**
   * Reports failures to accept connections, such as too many open files, and bugs in weir that close a connection. The
   * server continues.
   */
  onError(error: unknown): void;
  /** Reports, in a sentence, a connection that does not start as HTTP/2 or violates the protocol. */
  onBadConnection(message: string): void;
}
