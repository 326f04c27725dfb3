import type { Http2SecureServer, Http2Server } from 'node:http2';
import type { Server, ServerUnaryCall } from '@grpc/grpc-js';
import { BaseServerInterceptingCall } from '@grpc/grpc-js/build/src/server-interceptors.js';
import { type InflationOptions, inflationLimit } from './grpc-server.js';

/**
 * What @grpc/grpc-js 1.14.7 does not offer openly: putting its handlers on an HTTP/2 server that is ours. With
 * `bindAsync` it makes the HTTP/2 server itself, and then
 * - there is no way to set SETTINGS_MAX_HEADER_LIST_SIZE,
 * - a failed listen tells the system error only inside a sentence,
 * - sessions and sockets cannot be reached, which a drain needs. `createConnectionInjector` is open but has the same
 *   first and last gap. Its `_setupHandlers` does nothing but `http2Server.on('stream', …)` and
 *   `http2Server.on('session', …)`; the contract tests trip over any change of it, and the version is pinned.
 */
interface GrpcJsInternals {
  _setupHandlers(http2Server: Http2Server | Http2SecureServer, interceptors: readonly never[]): void;
}

/** Lets `server` answer the gRPC calls that arrive on `http2Server`. */
export function attachToHttp2Server(server: Server, http2Server: Http2Server | Http2SecureServer): void {
  const internals = server as unknown as Partial<GrpcJsInternals>;
  if (typeof internals._setupHandlers !== 'function') {
    throw new Error('this @grpc/grpc-js has no _setupHandlers; version 1.14.7 is needed');
  }
  (internals as GrpcJsInternals)._setupHandlers(http2Server, []);
}

/** A call of @grpc/grpc-js as far as it inflates messages. */
interface Inflating {
  readonly stream: { readonly session?: object };
  readonly maxReceiveMessageSize: number;
}

type Decompress = (this: Inflating, message: Buffer, encoding: string) => unknown;

/** What messages of a session may become. */
const sessions = new WeakMap<object, InflationOptions>();
/** Bytes of a message's prefix, which it gives its decompressor, too. */
const PREFIX_BYTES = 5;
let isBounded = false;

/**
 * Has the compressed messages of `session` inflated within bounds of their own: @grpc/grpc-js knows only the one for
 * messages. Its `decompressMessage` compares with `maxReceiveMessageSize` as the message grows; here that is another
 * for each message.
 */
export function boundInflation(session: object, options: InflationOptions): void {
  sessions.set(session, options);
  if (isBounded) return;
  isBounded = true;
  const calls = BaseServerInterceptingCall.prototype as unknown as { decompressMessage?: Decompress };
  const original = calls.decompressMessage;
  if (original === undefined) {
    throw new Error('this @grpc/grpc-js has no decompressMessage; version 1.14.7 is needed');
  }
  calls.decompressMessage = function (message, encoding) {
    const bounds = sessions.get(this.stream.session ?? this);
    if (bounds === undefined || encoding === 'identity') return original.call(this, message, encoding);
    const limit = inflationLimit(bounds, message.length - PREFIX_BYTES);
    const bounded = Object.create(this, { maxReceiveMessageSize: { value: limit } }) as Inflating;
    return original.call(bounded, message, encoding);
  };
}

/** The connection of a call, as an identity: its session, or the call itself once that is gone. */
export function sessionOf(call: ServerUnaryCall<unknown, unknown>): object {
  const { call: inner } = call as unknown as {
    readonly call?: { readonly stream?: { readonly session?: object } };
  };
  return inner?.stream?.session ?? call;
}
