import type { Socket } from 'node:net';
import type { RequestHandler } from '../request-handler.js';
import type { TlsMaterial } from '../tls-material.js';
import { BufferBudget } from './buffer-budget.js';
import type { ListenAddress } from './listen.js';
import { LostConnections } from './lost-connections.js';
import { ReadScheduler } from './read-scheduler.js';
import { ServedConnection, type SharedResources } from './served-connection.js';
import type { H2ServerOptions } from './server-options.js';
import { SocketServer } from './socket-server.js';

/** Times are checked this often within the shortest of them, in milliseconds. */
const SWEEPS_PER_SPAN = 8;
const LONGEST_SWEEP_MS = 1000;
const SHORTEST_SWEEP_MS = 10;
/** Connections that are ended in one turn of the event loop because something is due: about a millisecond's work. */
const CLOSED_PER_TURN = 30;

/**
 * An HTTP/2 server on TCP or a Unix domain socket, in clear text or TLS. What requests mean is the
 * {@link RequestHandler}'s.
 */
export class H2Server {
  readonly #handler: RequestHandler;
  readonly #options: H2ServerOptions;
  readonly #sockets: SocketServer;
  readonly #connections = new Set<ServedConnection>();
  /**
   * Connections with output that was made outside of their reading, flushed together at the end of the event-loop turn.
   */
  #withOutput: ServedConnection[] = [];
  readonly #shared: SharedResources;
  #sweeping: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #closing = false;

  /** Throws TlsMaterialError when certificates cannot be used. */
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
   * Resolves with the port bound, 0 for a socket path; rejects with Node's system error. A socket file that nobody
   * listens on any more is replaced, one that is served is EADDRINUSE; its rights come from the process's umask, and it
   * goes when the server closes.
   */
  listen(address: ListenAddress): Promise<number> {
    return this.#sockets.listen(address);
  }

  /**
   * New connections get these certificates, open ones go on. Throws an Error when they cannot be used: the old ones
   * stay.
   */
  setTls(material: TlsMaterial): void {
    this.#sockets.setTls(material);
  }

  /** Stops listening and sends GOAWAY on every connection: idle ones end now, the others with their last stream. */
  closeGracefully(): void {
    this.#closing = true;
    this.#sockets.stopListening();
    for (const connection of this.#connections) connection.closeGracefully();
  }

  /** Stops listening and cuts every connection, whatever runs on it. */
  cut(): void {
    this.#closing = true;
    this.#sockets.stopListening();
    this.#sockets.cut();
  }

  /**
   * What it holds and what waits, at this moment: bytes for all connections, connections to be read, and lost ones with
   * streams to be told.
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

  /** Resolves when no socket is left. */
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
    // Its handshake began before the end did.
    if (this.#closing) connection.closeGracefully();
  }

  readonly #onOutput = (connection: ServedConnection): void => {
    // Not process.nextTick: the answers of several replies of the store that one turn reads leave together.
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

  /** Peers that came together may be due together. */
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
  return Math.min(Math.max(shortest / SWEEPS_PER_SPAN, SHORTEST_SWEEP_MS), LONGEST_SWEEP_MS);
}
