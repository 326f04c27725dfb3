import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { HttpConnection } from './http-connection.js';
import { HttpReadScheduler } from './http-read-scheduler.js';

/**
 * Time in milliseconds after which a response that the client does not read is abandoned, together with its connection.
 */
export const UNREAD_MS = 30_000;

/**
 * Limits the number of connections of an HTTP port. A further connection closes the one that has been idle longest, or,
 * if all are busy, the one that has been busy longest. A health probe therefore always gets a connection.
 */
export class HttpConnections {
  readonly #maxConnections: number;
  /** Idle and busy connections, each in the order in which they became so. */
  readonly #idle = new Set<HttpConnection>();
  readonly #busy = new Set<HttpConnection>();
  readonly #reads = new HttpReadScheduler();

  constructor(most: number) {
    this.#maxConnections = most;
  }

  /** Creates the connection of an accepted socket. */
  accept(socket: Socket): HttpConnection {
    const connection = new HttpConnection(socket, this.#reads, (busy) => this.#moved(connection, busy));
    socket.setTimeout(UNREAD_MS, () => {
      // Node.js emits this event if no data was received or sent during the timeout.
      if (socket.writableLength > 0) connection.destroy();
    });
    if (this.#idle.size + this.#busy.size >= this.#maxConnections) this.#closeOne();
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

/** Returns the connection of a request. All requests of an HTTP port use this class. */
export function connectionOf(request: IncomingMessage): HttpConnection {
  return request.socket as unknown as HttpConnection;
}
