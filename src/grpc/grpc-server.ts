import { formatHostPort, type ListenAddress } from '../h2/serving/listen.js';
import type { TlsMaterial, TlsOptions } from '../h2/tls-material.js';
import type { ResetListener } from '../runtime/signal.js';
import type { GenericMethod } from './generic-method.js';

export { GrpcError, STATUS, type StatusCode, toGrpcError } from './grpc-error.js';
export { formatHostPort, type ListenAddress, type TlsMaterial, type TlsOptions };

/** Information about a call for its handler. */
export interface ServerCall {
  /**
   * Deadline of the caller on the monotonic clock of {@link GrpcServerOptions.monotonicMicros}, in microseconds.
   * Infinity without `grpc-timeout`.
   */
  readonly deadlineMicros: number;
  /**
   * Time at which the last bytes of the request arrived, in microseconds since `performance.timeOrigin`. Requests that
   * arrived together have the same time.
   */
  readonly receivedMicros: number;
  /** Returns whether the caller has canceled the call. Asynchronous handlers may then stop early. */
  cancelled(): boolean;
  /**
   * Learns whether the caller cancels the call before it gets the response. A handler may set it at any time before it
   * returns the response, or resolves with it. On the fast stack, each connection remembers its latest calls, so this
   * also works if the response was already sent. On the plain stack, it works only until the response is sent.
   */
  resetListener: ResetListener | undefined;
  /** Identifies the connection of the call: the same object for all calls of a connection. */
  readonly connection: object;
  /** The caller's address as `host:port`, for logs. */
  readonly peer: string;
  /** The header `x-request-id` of the call, if present. Any text. Available only until the handler returns. */
  readonly requestId: string | undefined;
  /**
   * Returns the header with this lowercase name, or undefined if it is absent. Multiple values are joined by commas.
   * Any text. Available only until the handler returns.
   */
  header(name: string): string | undefined;
}

/**
 * Handles one unary call with the request message in `bytes[start, end)`, and returns the response. The bytes are valid
 * only until the handler returns, so what is needed after an `await` must be read first. Returns the response without a
 * promise if possible. Fails by throwing or rejecting with {@link GrpcError}; any other error becomes INTERNAL with a
 * fixed message.
 */
export type UnaryHandler<Response> = (
  bytes: Uint8Array,
  call: ServerCall,
  start: number,
  end: number,
) => Response | Promise<Response>;

/** Encodes responses, from end to start, straight into the output of a connection. Must not throw. */
export interface MessageEncoder<Response> {
  /**
   * Called with each response of a handler, before it is encoded. May throw, like a handler. If the caller has canceled
   * the call, the response is not encoded.
   */
  accept?(response: Response, call: ServerCall): void;
  /** An upper bound for the encoded length, in bytes. */
  maxLength(response: Response): number;
  /** Writes a response so that it ends before `bytes[end]`. Returns the offset of its first byte. */
  writeBefore(response: Response, bytes: Uint8Array, end: number): number;
}

/** Limits and timeouts of a transport. Each is a documented setting. */
export interface GrpcServerOptions {
  /** TLS configuration (ALPN h2). If absent, the server uses cleartext. */
  readonly tls?: TlsOptions | undefined;
  /** Idle time in milliseconds after which a connection is sent a PING. Infinity: never. */
  readonly keepAliveIntervalMs: number;
  /** Time in milliseconds after that PING at which the connection is closed if nothing was received. */
  readonly keepAliveTimeoutMs: number;
  /** Maximum length of a request message in bytes. Longer messages fail with RESOURCE_EXHAUSTED. */
  readonly maxReceiveMessageBytes: number;
  /**
   * Number of bytes of a message that handlers get, also after inflation. The fast stack does not keep the rest. Its
   * methods of {@link GrpcServer.addGenericMethod} fail with RESOURCE_EXHAUSTED for a message of this length, or a
   * longer one.
   */
  readonly keptMessageBytes: number;
  /**
   * Maximum memory in bytes that all connections hold together. When it is exceeded, the connection that holds most is
   * closed. Fast stack only.
   */
  readonly maxBufferedBytes: number;
  /** Maximum number of open connections. Further connections are closed immediately. */
  readonly maxConnections: number;
  /**
   * Maximum time in milliseconds for the request of a unary call to arrive, after which the call fails with
   * DEADLINE_EXCEEDED. Infinity: no limit. Default: one minute. Fast stack only.
   */
  readonly receiveTimeoutMs?: number | undefined;
  /** Maximum number of concurrent calls on one connection (HTTP/2 SETTINGS_MAX_CONCURRENT_STREAMS). */
  readonly maxConcurrentStreams: number;
  /** Maximum size of a header list in bytes (HTTP/2 SETTINGS_MAX_HEADER_LIST_SIZE). Fast stack only. */
  readonly maxHeaderListBytes: number;
  /**
   * Maximum age of a connection in milliseconds, after which it is sent a GOAWAY, so that clients rebalance. Infinity:
   * no maximum.
   */
  readonly maxConnectionAgeMs: number;
  /** Time in milliseconds for which calls may continue after that GOAWAY. */
  readonly maxConnectionAgeGraceMs: number;
  /** Microseconds on the monotonic clock of {@link ServerCall.deadlineMicros}. */
  monotonicMicros(): number;
  /** Reports errors that callers only see as INTERNAL. */
  onError(error: unknown): void;
  /** Reports, in a sentence, a connection that is refused, does not start as HTTP/2, or violates the protocol. */
  onBadConnection(message: string): void;
}

/** Current load of a server: held memory and pending work. */
export interface GrpcLoad {
  readonly connections: number;
  /** Bytes held for all connections together; see {@link GrpcServerOptions.maxBufferedBytes}. */
  readonly bufferedBytes: number;
  /** Number of connections whose data waits to be read. */
  readonly reads: number;
  /** Number of unary calls whose handler has not answered yet. */
  readonly answers: number;
  /** Number of calls with a pending deadline. */
  readonly deadlines: number;
  /** Number of messages that are being inflated in the thread pool, or wait for it. */
  readonly inflating: number;
  /** Number of lost connections with calls that have not ended yet. */
  readonly lost: number;
}

/** A gRPC server on one of the two stacks. Register all methods before `listen`. */
export interface GrpcServer {
  /** Registers a method on the hot path. `path` is `/package.Service/Method`. */
  addUnary<Response>(path: string, handler: UnaryHandler<Response>, encoder: MessageEncoder<Response>): void;
  /** Registers a rarely called method, for example of health or reflection. */
  addGenericMethod(method: GenericMethod): void;
  /**
   * Starts listening. Resolves with the bound port, or 0 for a socket path; rejects with Node's system error (`code`
   * EADDRINUSE, EACCES, …). A stale socket file is replaced.
   */
  listen(address: ListenAddress): Promise<number>;
  /**
   * Uses these certificates for new connections. Open connections continue. Throws an Error if they cannot be used; the
   * previous ones then stay in use.
   */
  setTls(material: TlsMaterial): void;
  /**
   * Drains the server: accepts no new connections, closes idle connections immediately, and sends GOAWAY on the others
   * (RFC 9113 section 6.8), so that clients retry calls that are not served. Unary calls finish; streams end with
   * UNAVAILABLE. Resolves when no connection is open. After `graceMs`, the remaining connections are closed.
   */
  drain(graceMs: number): Promise<void>;
  /** Undefined if the transport does not know its load. */
  load(): GrpcLoad | undefined;
  /** Closes every connection and stops listening. */
  close(): Promise<void>;
}
