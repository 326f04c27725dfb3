import { DEFAULT_LIMITS, type H2Limits } from '../../h2/limits.js';
import { H2Server } from '../../h2/serving/h2-server.js';
import { HANDSHAKE_TIMEOUT_MS, LINGER_MS } from '../../h2/serving/socket-server.js';
import { SYSTEM_TIMERS } from '../../runtime/timers.js';
import type { GenericMethod } from '../generic-method.js';
import type {
  GrpcLoad,
  GrpcServer,
  GrpcServerOptions,
  ListenAddress,
  MessageEncoder,
  TlsMaterial,
  UnaryHandler,
} from '../grpc-server.js';
import { CallRouter } from './call-router.js';
import { GrpcServerState } from './grpc-server-state.js';
import { BoundStreamingMethod } from './streaming-call.js';
import { BoundUnaryMethod, WaitingStreams } from './unary-call.js';

/** The fast stack: the {@link GrpcServer} on the HTTP/2 engine in src/h2/. */
export class H2GrpcServer implements GrpcServer {
  readonly #context: GrpcServerState;
  readonly #router: CallRouter;
  readonly #server: H2Server;
  readonly #waiting = new WaitingStreams();
  #drained: Promise<void> | undefined;

  /** Throws an Error if the certificates of `options.tls` cannot be used. */
  constructor(options: GrpcServerOptions) {
    this.#context = new GrpcServerState(options, SYSTEM_TIMERS);
    this.#router = new CallRouter(this.#context);
    this.#server = new H2Server(this.#router, {
      limits: h2Limits(options),
      tls: options.tls,
      maxConnectionAgeMs: options.maxConnectionAgeMs,
      maxConnectionAgeGraceMs: options.maxConnectionAgeGraceMs,
      keepAliveIntervalMs: options.keepAliveIntervalMs,
      keepAliveTimeoutMs: options.keepAliveTimeoutMs,
      handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      maxConnections: options.maxConnections,
      maxBufferedBytes: options.maxBufferedBytes,
      nowMs: SYSTEM_TIMERS.nowMs,
      random: Math.random,
      onError: options.onError,
      onBadConnection: options.onBadConnection,
    });
  }

  addUnary<Response>(path: string, handler: UnaryHandler<Response>, encoder: MessageEncoder<Response>): void {
    this.#router.add(
      path,
      (head) => new BoundUnaryMethod(path, handler, encoder, head, this.#context, this.#waiting),
    );
  }

  addGenericMethod(method: GenericMethod): void {
    this.#router.add(method.path, (head) => new BoundStreamingMethod(method, head, this.#context));
  }

  listen(address: ListenAddress): Promise<number> {
    return this.#server.listen(address);
  }

  setTls(material: TlsMaterial): void {
    this.#server.setTls(material);
  }

  drain(graceMs: number): Promise<void> {
    this.#drained ??= this.#drain(graceMs);
    return this.#drained;
  }

  load(): GrpcLoad {
    const { running, deadlines, inflater } = this.#context;
    return {
      ...this.#server.load(),
      answers: running,
      deadlines: deadlines.size,
      inflating: inflater.size,
    };
  }

  async close(): Promise<void> {
    this.#server.closeNow();
    await this.#server.empty();
  }

  /**
   * Calls that arrive before the client has read the first GOAWAY are served. The second GOAWAY names the last call
   * that is served, so clients retry later calls elsewhere. When no handler runs any more, only responses remain to be
   * sent. Clients that read them receive them within the linger time.
   */
  async #drain(graceMs: number): Promise<void> {
    const context = this.#context;
    context.openStreams.end();
    this.#server.closeGracefully();
    let quiet: NodeJS.Timeout | undefined;
    context.onIdle = () => {
      clearTimeout(quiet);
      quiet = setTimeout(() => {
        if (context.running === 0) this.#server.closeNow();
      }, LINGER_MS);
    };
    if (context.running === 0) context.onIdle();
    const grace = setTimeout(() => this.#server.closeNow(), graceMs);
    await this.#server.empty();
    context.onIdle = undefined;
    clearTimeout(quiet);
    clearTimeout(grace);
  }
}

export function h2Limits(options: GrpcServerOptions): H2Limits {
  // Encoding makes a block at most slightly longer than its list. A list that exceeds the limit must reach the check
  // that answers 431.
  const maxHeaderBlockBytes = Math.max(DEFAULT_LIMITS.maxHeaderBlockBytes, 2 * options.maxHeaderListBytes);
  return {
    ...DEFAULT_LIMITS,
    maxConcurrentStreams: options.maxConcurrentStreams,
    maxHeaderListBytes: options.maxHeaderListBytes,
    maxHeaderBlockBytes,
    maxContinuations: Math.max(
      DEFAULT_LIMITS.maxContinuations,
      Math.ceil((2 * maxHeaderBlockBytes) / DEFAULT_LIMITS.maxFrameBytes),
    ),
    // One response of the length of a request, and queued output.
    maxOutputBytes: Math.max(DEFAULT_LIMITS.maxOutputBytes, 2 * options.keptMessageBytes),
  };
}
