import type { Http2SecureServer, Http2Server } from 'node:http2';
import type { Server } from '@grpc/grpc-js';

/**
 * What @grpc/grpc-js 1.14.7 does not offer openly: putting its handlers on an HTTP/2 server that is ours. With
 * `bindAsync` it makes the HTTP/2 server itself, and then
 * - there is no way to set SETTINGS_MAX_HEADER_LIST_SIZE,
 * - a failed listen tells the system error only inside a sentence,
 * - sessions and sockets cannot be reached, which a drain needs.
 * `createConnectionInjector` is open but has the same first and last gap. Its `_setupHandlers` does nothing but
 * `http2Server.on('stream', …)` and `http2Server.on('session', …)`; the contract tests trip over any change of it, and the
 * version is pinned.
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
