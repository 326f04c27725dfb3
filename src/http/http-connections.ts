import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { HttpConnection } from './http-connection.js';
import { HttpReadScheduler } from './http-read-scheduler.js';

/** An answer that is not read on for so long is given up, with its connection. */
export const UNREAD_MS = 30_000;

/**
 * The connections of an HTTP port: only so many. One more closes the one that is without a request longest, or, where
 * all have one, the one that has been busy longest: so a health probe gets through, whoever holds how many.
 */
export class HttpConnections {
  readonly #most: number;
  /** Those without a request, and those with one, each in the order in which they became it. */
  readonly #idle = new Set<HttpConnection>();
  readonly #busy = new Set<HttpConnection>();
  readonly #reads = new HttpReadScheduler();

  constructor(most: number) {
    this.#most = most;
  }

  /** The connection of a socket that was accepted. */
  accept(socket: Socket): HttpConnection {
    const connection = new HttpConnection(socket, this.#reads, (busy) => this.#moved(connection, busy));
    socket.setTimeout(UNREAD_MS, () => {
      // Node.js says so when nothing came, nothing began to be sent, and nothing of it was taken.
      if (socket.writableLength > 0) connection.destroy();
    });
    if (this.#idle.size + this.#busy.size >= this.#most) this.#closeOne();
    this.#idle.add(connection);
    connection.once('close', () => {
      this.#idle.delete(connection);
      this.#busy.delete(connection);
    });
    return connection;
  }

  #moved(connection: HttpConnection, busy: boolean): void {
    if (connection.destroyed) return;
    this.#idle.delete(connection);
    this.#busy.delete(connection);
    (busy ? this.#busy : this.#idle).add(connection);
  }

  #closeOne(): void {
    for (const connections of [this.#idle, this.#busy]) {
      for (const connection of connections) {
        connections.delete(connection);
        connection.destroy();
        return;
      }
    }
  }
}

/** The connection that a request came on; every request of an HTTP port comes on one of these. */
export function connectionOf(request: IncomingMessage): HttpConnection {
  return request.socket as unknown as HttpConnection;
}
