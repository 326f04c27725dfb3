import { createServer, type Http2Server, type IncomingHttpHeaders } from 'node:http2';
import {
  logVerbosity,
  Server,
  type ServerOptions,
  type ServerUnaryCall,
  type ServiceDefinition,
  type StatusObject,
  type sendUnaryData,
  setLogVerbosity,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { formatHostPort } from '../h2/serving/peer-name.js';
import { HANDSHAKE_TIMEOUT_MS, LINGER_MS, SocketServer } from '../h2/serving/socket-server.js';
import { Connections } from './connections.js';
import { attachToHttp2Server, boundInflation, sessionOf } from './grpc-js-internals.js';
import {
  type CallInfo,
  GrpcError,
  type GrpcServer,
  type GrpcServerOptions,
  type ListenAddress,
  STATUS,
  type TlsMaterial,
  type UnaryHandler,
} from './grpc-server.js';
import { RareServices } from './rare-service.js';
import { normaliseTimeout } from './timeout-header.js';

/** Spans above this mean never: with its jitter of a tenth grpc-js would overflow Node's timers (24.8 days). */
const MAX_SPAN_MS = 1_900_000_000;

/**
 * How many streams a caller may reset at once, and then each second, before the connection is ended. Envoy resets one
 * for each answer it no longer waits for, so the defaults (1000, 33) would cut a busy connection while Redis hangs.
 * Node 20 has only the defaults.
 */
const STREAM_RESETS = { streamResetBurst: 10_000, streamResetRate: 10_000 };

type RawCall = ServerUnaryCall<Buffer, Uint8Array>;

interface Answer {
  readonly callback: sendUnaryData<Uint8Array>;
  readonly message: Uint8Array;
}

/** The {@link GrpcServer} on @grpc/grpc-js. Messages pass through as bytes. */
export class GrpcJsServer implements GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #grpc: Server;
  readonly #http2: Http2Server;
  readonly #sockets: SocketServer;
  readonly #connections: Connections;
  readonly #rareServices: RareServices;
  /** Unary calls that have no answer yet. */
  #running = 0;
  /** Answers of this event-loop turn. */
  #answers: Answer[] = [];
  #drained: Promise<void> | undefined;
  /** Set while draining: called when `#running` falls to 0. */
  #onQuiet: (() => void) | undefined;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    // grpc-js prints header values of callers, secrets included, on stderr. Its own variable turns that on again.
    if (process.env['GRPC_VERBOSITY'] === undefined) setLogVerbosity(logVerbosity.NONE);
    this.#grpc = new Server(grpcJsOptions(options));
    this.#http2 = createServer({
      ...STREAM_RESETS,
      settings: {
        maxConcurrentStreams: options.maxConcurrentStreams,
        // Enforced by Node once the client has acknowledged the settings; until then its own 65,535 bytes hold. A
        // stream that exceeds it is reset with ENHANCE_YOUR_CALM, which gRPC clients read as RESOURCE_EXHAUSTED.
        maxHeaderListSize: options.maxHeaderListBytes,
      },
      // As grpc-js sets them: Node resets good streams when a session meets its memory limit. What a connection may
      // hold is bounded by streams at once × message size.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
    });
    // node:http2 never listens itself: sockets come from the same place as those of our own engine.
    const connections = new Connections(this.#http2, options.onBadConnection);
    this.#connections = connections;
    this.#sockets = new SocketServer({
      tls: options.tls,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      maxConnections: options.maxConnections,
      onSocket: (socket, peer) => connections.add(socket, peer),
      onError: options.onError,
      onBadConnection: options.onBadConnection,
    });
    this.#rareServices = new RareServices(options.onError);
    this.#http2.on('session', (session) => boundInflation(session, options));
    // Before the listener of grpc-js, which gets the same headers object.
    this.#http2.on('stream', (_stream, headers: IncomingHttpHeaders) => {
      const timeout = headers['grpc-timeout'];
      if (typeof timeout !== 'string') return;
      const usable = normaliseTimeout(timeout);
      if (usable === undefined) delete headers['grpc-timeout'];
      else headers['grpc-timeout'] = usable;
    });
    attachToHttp2Server(this.#grpc, this.#http2);
  }

  addUnary(path: string, handler: UnaryHandler): void {
    const answer = (call: RawCall, callback: sendUnaryData<Uint8Array>): void => {
      this.#running++;
      let result: Uint8Array | Promise<Uint8Array>;
      try {
        result = handler(call.request, new GrpcJsCallInfo(call, this.#options));
      } catch (error) {
        this.#fail(callback, error);
        return;
      }
      if (isPromise(result)) {
        result.then(
          (message) => this.#succeed(callback, message),
          (error: unknown) => this.#fail(callback, error),
        );
      } else {
        this.#succeed(callback, result);
      }
    };
    if (!this.#grpc.register(path, answer, toBuffer, passThrough, 'unary')) {
      throw new Error(`a handler for ${path} is registered already`);
    }
  }

  addService(definition: ServiceDefinition, implementation: UntypedServiceImplementation): void {
    this.#grpc.addService(definition, this.#rareServices.guard(definition, implementation));
  }

  listen(address: ListenAddress): Promise<number> {
    return this.#sockets.listen(address);
  }

  setTls(material: TlsMaterial): void {
    this.#sockets.setTls(material);
  }

  drain(graceMs: number): Promise<void> {
    this.#drained ??= this.#drain(graceMs);
    return this.#drained;
  }

  load(): undefined {
    return undefined;
  }

  async close(): Promise<void> {
    const closed = this.#stopListening();
    this.#sockets.cut();
    await closed;
  }

  /**
   * New calls are refused by the GOAWAY itself: it names the last stream that is served, and gRPC clients try a later
   * one elsewhere or report it as UNAVAILABLE; new connections find no listener. Once no handler runs, all there is
   * left to do is to hand over answers, for which a reading client needs no more than the linger time.
   */
  async #drain(graceMs: number): Promise<void> {
    const closed = this.#stopListening();
    this.#rareServices.endStreams();
    this.#connections.closeGracefully();
    const cut = (): void => {
      if (this.#running === 0) this.#sockets.cut();
    };
    let quiet: NodeJS.Timeout | undefined;
    this.#onQuiet = () => {
      clearTimeout(quiet);
      quiet = setTimeout(cut, LINGER_MS);
    };
    if (this.#running === 0) this.#onQuiet();
    const grace = setTimeout(() => this.#sockets.cut(), graceMs);
    await closed;
    this.#onQuiet = undefined;
    clearTimeout(quiet);
    clearTimeout(grace);
  }

  /** Resolves when the listener and every connection are closed. */
  async #stopListening(): Promise<void> {
    this.#sockets.stopListening();
    await this.#sockets.empty();
  }

  /**
   * Answers leave together at the end of the event-loop turn: grpc-js sends headers, message and trailers of a call in
   * steps, and what one turn has for a connection then goes out in one write. About a fifth of the CPU time of a call
   * (`npm run bench`).
   */
  #succeed(callback: sendUnaryData<Uint8Array>, message: Uint8Array): void {
    if (this.#answers.length === 0) setImmediate(this.#sendAnswers);
    this.#answers.push({ callback, message });
  }

  readonly #sendAnswers = (): void => {
    const answers = this.#answers;
    this.#answers = [];
    for (const { callback, message } of answers) {
      this.#finish();
      callback(null, message);
    }
  };

  #fail(callback: sendUnaryData<Uint8Array>, error: unknown): void {
    this.#finish();
    if (error instanceof GrpcError) {
      callback(toStatus(error.code, error.message));
    } else {
      this.#options.onError(error);
      callback(toStatus(STATUS.INTERNAL, 'internal error'));
    }
  }

  #finish(): void {
    this.#running--;
    if (this.#running === 0) this.#onQuiet?.();
  }
}

/** A call's deadline, state and peer; the peer is only looked up when somebody asks. */
class GrpcJsCallInfo implements CallInfo {
  readonly deadlineMicros: number;
  readonly #call: RawCall;

  constructor(call: RawCall, clock: Pick<GrpcServerOptions, 'monotonicMicros'>) {
    this.#call = call;
    // grpc-js counts on the wall clock; the handler runs at once, so a step in between is no concern.
    const deadline = call.getDeadline() as number;
    this.deadlineMicros =
      deadline === Number.POSITIVE_INFINITY
        ? deadline
        : clock.monotonicMicros() + (deadline - Date.now()) * 1000;
  }

  cancelled(): boolean {
    return this.#call.cancelled;
  }

  get connection(): object {
    return sessionOf(this.#call);
  }

  get requestId(): string | undefined {
    return this.#call.metadata.get('x-request-id')[0]?.toString();
  }

  header(name: string): string | undefined {
    const values = this.#call.metadata.get(name);
    return values.length === 0 ? undefined : values.join(',');
  }

  get peer(): string {
    const peer = this.#call.getPeer();
    const colon = peer.lastIndexOf(':');
    return colon < 0 ? peer : formatHostPort(peer.slice(0, colon), Number(peer.slice(colon + 1)));
  }
}

function grpcJsOptions(options: GrpcServerOptions): ServerOptions {
  const result: ServerOptions = {
    'grpc.max_receive_message_length': options.maxReceiveMessageBytes,
    'grpc.max_send_message_length': -1,
    // Nobody asks channelz here, and it counts on every call.
    'grpc.enable_channelz': 0,
    'grpc.keepalive_timeout_ms': Math.min(options.keepAliveTimeoutMs, MAX_SPAN_MS),
  };
  const spans = {
    'grpc.max_connection_age_ms': options.maxConnectionAgeMs,
    'grpc.max_connection_age_grace_ms': options.maxConnectionAgeGraceMs,
    'grpc.keepalive_time_ms': options.keepAliveIntervalMs,
  };
  for (const [name, span] of Object.entries(spans)) if (span <= MAX_SPAN_MS) result[name] = span;
  return result;
}

function isPromise(result: Uint8Array | Promise<Uint8Array>): result is Promise<Uint8Array> {
  return 'then' in result;
}

/** A status for the wire. grpc-js percent-encodes the text and throws on half a surrogate pair. */
function toStatus(code: number, message: string): Partial<StatusObject> {
  return { code, details: message.replace(/\p{Surrogate}/gu, '\ufffd') };
}

/** grpc-js copies the message with Buffer's own method. */
function toBuffer(message: Uint8Array): Buffer {
  return Buffer.isBuffer(message)
    ? message
    : Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

function passThrough(message: Buffer): Buffer {
  return message;
}
