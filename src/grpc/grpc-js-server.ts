import type { Socket } from 'node:net';
import {
  type ConnectionInjector,
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerOptions,
  type ServerUnaryCall,
  type sendUnaryData,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { HANDSHAKE_TIMEOUT_MS, SocketServer } from '../h2/serving/socket-server.js';
import { type GenericMethod, OpenStreams } from './generic-method.js';
import { type ByteStream, byteMethod, GrpcJsCall, statusOf } from './grpc-js-call.js';
import {
  formatHostPort,
  type GrpcServer,
  type GrpcServerOptions,
  type ListenAddress,
  type MessageEncoder,
  type ServerCall,
  type TlsMaterial,
  toGrpcError,
  type UnaryHandler,
} from './grpc-server.js';

/**
 * Longer times mean never: with its jitter of a tenth, grpc-js would exceed the maximum delay of Node timers (24.8
 * days).
 */
const MAX_SPAN_MS = 1_900_000_000;
/** The value of @grpc/grpc-js for never. */
const NEVER_MS = 2_147_483_647;

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

/**
 * The plain stack: the {@link GrpcServer} on @grpc/grpc-js. It uses the socket server of the fast stack, so ports, TLS
 * and the maximum number of connections work in the same way.
 */
export class GrpcJsServer implements GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #grpc: Server;
  readonly #injector: ConnectionInjector;
  readonly #sockets: SocketServer;
  readonly #openStreams = new OpenStreams();
  /**
   * Open connections by the peer name of @grpc/grpc-js. All connections on a Unix domain socket have the same name.
   */
  readonly #connections = new Map<string, Socket>();

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    // grpc-js prints header values of callers, including secrets, to stderr. Its own environment variable enables this
    // again.
    if (process.env['GRPC_VERBOSITY'] === undefined) setLogVerbosity(logVerbosity.NONE);
    this.#grpc = new Server(grpcJsOptions(options));
    this.#injector = this.#grpc.createConnectionInjector(ServerCredentials.createInsecure());
    this.#sockets = new SocketServer({
      tls: options.tls,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      maxConnections: options.maxConnections,
      onSocket: (socket) => this.#serve(socket),
      onError: options.onError,
      onBadConnection: options.onBadConnection,
    });
  }

  addUnary<Response>(path: string, handler: UnaryHandler<Response>, encoder: MessageEncoder<Response>): void {
    const answer = async (call: UnaryCall, callback: sendUnaryData<Buffer>): Promise<void> => {
      try {
        const info = this.#infoOf(call);
        const { request } = call;
        const response = await handler(request, info, 0, request.length);
        encoder.accept?.(response, info);
        if (call.cancelled) info.resetListener?.onReset();
        else info.resetListener?.onForgotten();
        const bytes = Buffer.allocUnsafe(encoder.maxLength(response));
        callback(null, bytes.subarray(encoder.writeBefore(response, bytes, bytes.length)));
      } catch (error) {
        callback(statusOf(toGrpcError(error, this.#options.onError)));
      }
    };
    const streams = { requestStream: false, responseStream: false };
    this.#grpc.addService({ [path]: byteMethod(path, streams) }, { [path]: answer });
  }

  addGenericMethod(method: GenericMethod): void {
    const begin = (stream: ByteStream): void => {
      new GrpcJsCall(stream, method, this.#openStreams, this.#options.onError).start();
    };
    const { path, requestStream } = method;
    this.#grpc.addService(
      { [path]: byteMethod(path, { requestStream, responseStream: true }) },
      { [path]: begin },
    );
  }

  listen(address: ListenAddress): Promise<number> {
    return this.#sockets.listen(address);
  }

  setTls(material: TlsMaterial): void {
    this.#sockets.setTls(material);
  }

  async drain(graceMs: number): Promise<void> {
    this.#sockets.stopListening();
    this.#openStreams.end();
    this.#injector.drain(graceMs);
    const grace = setTimeout(() => this.#sockets.closeNow(), graceMs);
    await this.#sockets.empty();
    clearTimeout(grace);
  }

  load(): undefined {
    return undefined;
  }

  async close(): Promise<void> {
    this.#sockets.stopListening();
    this.#sockets.closeNow();
    await this.#sockets.empty();
  }

  #serve(socket: Socket): void {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    this.#connections.set(peer, socket);
    socket.once('close', () => this.#connections.delete(peer));
    this.#injector.injectConnection(socket);
  }

  #infoOf(call: UnaryCall): ServerCall {
    const { metadata } = call;
    const peer = call.getPeer();
    const colon = peer.lastIndexOf(':');
    const values = (name: string): string[] => metadata.get(name).map(String);
    // grpc-js measures deadlines with the wall clock. The handler runs immediately, so a step of that clock does no
    // harm.
    const leftMicros = (Number(call.getDeadline()) - Date.now()) * 1000;
    return {
      deadlineMicros: this.#options.monotonicMicros() + leftMicros,
      receivedMicros: performance.now() * 1000,
      cancelled: () => call.cancelled,
      resetListener: undefined,
      connection: this.#connections.get(peer) ?? this,
      peer: colon < 0 ? peer : formatHostPort(peer.slice(0, colon), Number(peer.slice(colon + 1))),
      requestId: values('x-request-id')[0],
      header: (name) => (metadata.get(name).length === 0 ? undefined : values(name).join(',')),
    };
  }
}

function grpcJsOptions(options: GrpcServerOptions): ServerOptions {
  const spanOf = (ms: number): number => (ms > MAX_SPAN_MS ? NEVER_MS : ms);
  return {
    'grpc.max_receive_message_length': options.maxReceiveMessageBytes,
    'grpc.max_concurrent_streams': options.maxConcurrentStreams,
    // weir does not use channelz, which adds a cost to each call.
    'grpc.enable_channelz': 0,
    'grpc.keepalive_time_ms': spanOf(options.keepAliveIntervalMs),
    'grpc.keepalive_timeout_ms': spanOf(options.keepAliveTimeoutMs),
    'grpc.max_connection_age_ms': spanOf(options.maxConnectionAgeMs),
    'grpc.max_connection_age_grace_ms': spanOf(options.maxConnectionAgeGraceMs),
  };
}
