import type { ListenAddress } from '../h2/serving/listen.js';
import { formatHostPort } from '../h2/serving/peer-name.js';
import type { TlsMaterial, TlsOptions } from '../h2/tls-material.js';
import type { AuxiliaryMethod } from './auxiliary-method.js';

export { GrpcError, STATUS, type StatusCode, toGrpcError } from './grpc-error.js';
export { formatHostPort, type ListenAddress, type TlsMaterial, type TlsOptions };

/** What a handler may know about the call it answers. */
export interface CallInfo {
  /**
   * When the caller stops waiting, on the monotonic clock of {@link GrpcServerOptions.monotonicMicros}; Infinity
   * without `grpc-timeout`.
   */
  readonly deadlineMicros: number;
  /** True once the caller has gone away; asynchronous handlers may stop early. */
  cancelled(): boolean;
  /** Stands for the connection that the call came by: the same for all its calls, of no other meaning. */
  readonly connection: object;
  /** The caller's address as `host:port`, for logs. */
  readonly peer: string;
  /** The header `x-request-id` of the call, if it has one. Any text; only there until the handler returns. */
  readonly requestId: string | undefined;
  /**
   * The header of the call with this name in lower case, several of it joined by commas; undefined without. Any text;
   * only there until the handler returns.
   */
  header(name: string): string | undefined;
}

/**
 * Answers one unary call: request message in, response message out, both as bytes on the fast stack. Such bytes of
 * `message` are only there until the handler returns: what is needed after an `await` must be read before it. Answers
 * at once where it can (no promise), and fails by throwing or rejecting with {@link GrpcError}; anything else becomes
 * INTERNAL with a fixed text on the wire.
 */
export type UnaryHandler<Message = Uint8Array, Answer = Uint8Array> = (
  message: Message,
  call: CallInfo,
) => Answer | Promise<Answer>;

/**
 * A compressed message may become at most this many times as long. Requests of Envoy shrink by a tenth of it at the
 * very best.
 */
export const MAX_INFLATION = 100;

/** What bounds compressed messages. */
export type InflationOptions = Pick<
  GrpcServerOptions,
  'maxInflatedBytes' | 'maxInflation' | 'maxReceiveMessageBytes'
>;

/** What a message of `compressedBytes` may become. Bytes. */
export function inflationLimit(options: InflationOptions, compressedBytes: number): number {
  const { maxInflatedBytes, maxInflation = MAX_INFLATION } = options;
  return Math.min(maxInflatedBytes, options.maxReceiveMessageBytes, maxInflation * compressedBytes);
}

/** Limits and lifetimes of a transport; every one is a documented setting. */
export interface GrpcServerOptions {
  /** Serve TLS (ALPN h2) instead of clear text. */
  readonly tls?: TlsOptions | undefined;
  /** A connection silent for this long is sent a PING; Infinity: never. Milliseconds. */
  readonly keepAliveIntervalMs: number;
  /** No answer to that PING within this time ends the connection. Milliseconds. */
  readonly keepAliveTimeoutMs: number;
  /** Largest request message in bytes; a larger one gets RESOURCE_EXHAUSTED. */
  readonly maxReceiveMessageBytes: number;
  /** What a compressed message may become, in bytes; more gets RESOURCE_EXHAUSTED. Only the transport h2 knows it. */
  readonly maxInflatedBytes: number;
  /** How many times its length a compressed message may become. Default: {@link MAX_INFLATION}. */
  readonly maxInflation?: number | undefined;
  /**
   * What all connections together may hold; beyond it the one that holds most is ended. Only the transport h2 knows it.
   * Bytes.
   */
  readonly maxBufferedBytes: number;
  /** Connections at a time; one more is closed at once. */
  readonly maxConnections: number;
  /**
   * How long the request of a unary call may take to arrive; then it ends with DEADLINE_EXCEEDED. Infinity: for ever.
   * Default: a minute. Only the transport h2 knows it. Milliseconds.
   */
  readonly receiveTimeoutMs?: number | undefined;
  /** Calls at once per connection (HTTP/2 SETTINGS_MAX_CONCURRENT_STREAMS). */
  readonly maxConcurrentStreams: number;
  /** Largest header list in bytes (HTTP/2 SETTINGS_MAX_HEADER_LIST_SIZE). Only the transport h2 knows it. */
  readonly maxHeaderListBytes: number;
  /** A connection older than this gets a GOAWAY, so that clients rebalance; Infinity: never. Milliseconds. */
  readonly maxConnectionAgeMs: number;
  /** How long calls may go on after that GOAWAY. Milliseconds. */
  readonly maxConnectionAgeGraceMs: number;
  /** The monotonic clock that {@link CallInfo.deadlineMicros} is told in. */
  monotonicMicros(): number;
  /** Told of what a caller only sees as INTERNAL. */
  onError(error: unknown): void;
  /** Told, in a sentence, of each connection that is refused, does not begin as HTTP/2, or breaks its rules. */
  onBadConnection(message: string): void;
}

/** What a server holds for its callers, and still has to do for them. */
export interface GrpcLoad {
  readonly connections: number;
  /** Held for all connections together; see {@link GrpcServerOptions.maxBufferedBytes}. */
  readonly bufferedBytes: number;
  /** Connections whose bytes wait to be read. */
  readonly reads: number;
  /** Unary calls whose handler has not answered yet. */
  readonly answers: number;
  /** Calls with a time at which they end. */
  readonly deadlines: number;
  /** Messages that are, or wait to be, inflated beside the event loop. */
  readonly inflating: number;
  /** Connections that are gone, and some of whose calls are not ended yet. */
  readonly lost: number;
}

/**
 * A gRPC server on one of the two stacks, which each have a method of their own for ShouldRateLimit. Register
 * everything before `listen`.
 */
export interface GrpcServer {
  /** Registers a method of a service that is asked rarely, such as health and reflection. */
  addMethod(method: AuxiliaryMethod): void;
  /**
   * Resolves with the port bound, 0 for a socket path; rejects with Node's system error (`code` EADDRINUSE, EACCES, …).
   * A socket file that nobody listens on any more is replaced.
   */
  listen(address: ListenAddress): Promise<number>;
  /**
   * New connections get these certificates; those that are open go on. Throws an Error when they cannot be used: the
   * old ones stay.
   */
  setTls(material: TlsMaterial): void;
  /**
   * Takes no new connection, tells callers by GOAWAY (RFC 9113 section 6.8) which calls are still served, so that they
   * make all others elsewhere, lets those of unary methods finish, ends streams with UNAVAILABLE, closes idle
   * connections at once. Resolves when no connection is left, at the latest after `graceMs`, when the rest is cut off.
   */
  drain(graceMs: number): Promise<void>;
  /** How it stands at this moment; undefined where the transport does not know. */
  load(): GrpcLoad | undefined;
  /** Cuts every connection and stops listening. */
  close(): Promise<void>;
}
