import type { Socket } from 'node:net';
import type { RequestHandler } from '../request-handler.js';
import type { TlsMaterial } from '../tls-material.js';
import { BufferBudget } from './buffer-budget.js';
import type { ListenAddress } from './listen.js';
import { ReadScheduler } from './read-scheduler.js';
import {
  type H2ServerOptions,
  LostConnections,
  ServedConnection,
  type SharedResources,
} from './served-connection.js';
import { SocketServer } from './socket-server.js';

/** Number of sweeps within the shortest configured timeout. */
const SWEEPS_PER_TIMEOUT = 8;
const MAX_SWEEP_MS = 1000;
const MIN_SWEEP_MS = 10;
/**
 * Maximum number of connections closed in one turn of the event loop because of a timeout. This takes about a
 * millisecond.
 */
const CLOSED_PER_TURN = 30;

/**
 * An HTTP/2 server on TCP or a Unix domain socket, in cleartext or with TLS. The {@link RequestHandler} handles the
 * requests.
 */
export class H2Server {
  readonly #handler: RequestHandler;
  readonly #options: H2ServerOptions;
  readonly #sockets: SocketServer;
  readonly #connections = new Set<ServedConnection>();
  /**
   * Connections with output that was produced outside of reading. They are flushed together at the end of the turn of
   * the event loop.
   */
  #withOutput: ServedConnection[] = [];
  readonly #shared: SharedResources;
  #sweeping: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #closing = false;

  /** Throws TlsMaterialError if the certificates cannot be used. */
  constructor(handler: RequestHandler, options: H2ServerOptions) {
    this.#handler = handler;
    this.#options = options;
    this.#shared = {
      turns: new ReadScheduler(options.nowMs),
      budget: new BufferBudget(options.maxBufferedBytes),
      lost: new LostConnections(),
    };
    this.#sockets = new SocketServer({
      tls: options.tls,
      handshakeTimeoutMs: options.handshakeTimeoutMs,
      maxConnections: options.maxConnections,
      onSocket: (socket, peer) => this.#serve(socket, peer),
      onError: options.onError,
      onBadConnection: options.onBadConnection,
    });
  }

  /**
   * Starts listening. Resolves with the bound port, or 0 for a socket path; rejects with Node's system error. A stale
   * socket file that no server listens on is replaced; one that is in use fails with EADDRINUSE. The permissions of the
   * file follow the umask of the process, and the file is removed when the server closes.
   */
  listen(address: ListenAddress): Promise<number> {
    return this.#sockets.listen(address);
  }

  /**
   * Uses these certificates for new connections. Open connections continue. Throws an Error if the certificates cannot
   * be used; the previous ones then stay in use.
   */
  setTls(material: TlsMaterial): void {
    this.#sockets.setTls(material);
  }

  /**
   * Stops listening and sends GOAWAY on every connection. Idle connections close immediately, the others with their
   * last stream.
   */
  closeGracefully(): void {
    this.#closing = true;
    this.#sockets.stopListening();
    for (const connection of this.#connections) connection.closeGracefully();
  }

  /** Stops listening and closes every connection, even if streams are open. */
  closeNow(): void {
    this.#closing = true;
    this.#sockets.stopListening();
    this.#sockets.closeNow();
  }

  /**
   * Returns the current load: connections, bytes held for all connections, connections that wait to be read, and lost
   * connections whose streams are not reset yet.
   */
  load(): {
    readonly connections: number;
    readonly bufferedBytes: number;
    readonly reads: number;
    readonly lost: number;
  } {
    const { budget, turns, lost } = this.#shared;
    return {
      connections: this.#connections.size,
      bufferedBytes: budget.bytes,
      reads: turns.waiting,
      lost: lost.waiting,
    };
  }

  /** Resolves when no socket is open. */
  empty(): Promise<void> {
    return this.#sockets.empty();
  }

  #serve(socket: Socket, peer: string): void {
    const maxAgeMs = this.#options.maxConnectionAgeMs * (0.9 + 0.2 * this.#options.random());
    const connection = new ServedConnection(
      socket,
      peer,
      maxAgeMs,
      this.#handler,
      this.#options,
      this.#shared,
      this.#onOutput,
    );
    this.#connections.add(connection);
    socket.once('close', () => {
      this.#connections.delete(connection);
      if (this.#connections.size > 0) return;
      clearInterval(this.#sweeping);
      this.#sweeping = undefined;
    });
    this.#sweeping ??= setInterval(() => this.#sweep(), sweepMs(this.#options)).unref();
    // The TLS handshake began before the shutdown.
    if (this.#closing) connection.closeGracefully();
  }

  readonly #onOutput = (connection: ServedConnection): void => {
    // setImmediate instead of process.nextTick: responses to several replies of the store, read in one turn, are then
    // sent together.
    if (this.#withOutput.push(connection) === 1) setImmediate(this.#flush);
  };

  readonly #flush = (): void => {
    const connections = this.#withOutput;
    this.#withOutput = [];
    for (const connection of connections) connection.flush();
  };

  #sweep(): void {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    this.#sweepOn(this.#connections.values());
  }

  /** Continues a sweep. Connections that were opened at the same time may time out at the same time. */
  #sweepOn(connections: Iterator<ServedConnection>): void {
    const nowMs = this.#options.nowMs();
    let ended = 0;
    for (let next = connections.next(); next.done !== true; next = connections.next()) {
      if (!next.value.sweep(nowMs) || ++ended < CLOSED_PER_TURN) continue;
      setImmediate(() => this.#sweepOn(connections));
      return;
    }
    this.#isSweeping = false;
  }
}

function sweepMs(options: H2ServerOptions): number {
  const shortest = Math.min(
    options.handshakeTimeoutMs,
    options.maxConnectionAgeMs,
    options.maxConnectionAgeGraceMs,
    options.keepAliveIntervalMs,
    options.keepAliveTimeoutMs,
  );
  return Math.min(Math.max(shortest / SWEEPS_PER_TIMEOUT, MIN_SWEEP_MS), MAX_SWEEP_MS);
}
