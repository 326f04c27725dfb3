import type { Socket } from 'node:net';
import { ignore } from '../runtime/ignore.js';

/** The addresses of a connection, which its TCP socket and its TLS socket share. */
type SocketAddresses = Pick<Socket, 'localAddress' | 'remoteAddress' | 'remotePort'>;

/**
 * The open connections of an HTTP port. A connection above the maximum closes another one, so that a health probe
 * always gets a connection. The first one to be closed is the oldest one that has neither sent a request nor finished a
 * TLS handshake, then the one whose latest request is the oldest.
 */
export class OpenConnections {
  readonly #max: number;
  /** Both maps are in the order in which their connections are closed. */
  readonly #unused = new Map<string, Socket>();
  readonly #used = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Adds an accepted TCP socket. */
  add(socket: Socket): void {
    const name = nameOf(socket);
    // The loss of a connection during its handshake is not an error.
    socket.on('error', ignore);
    socket.once('close', () => {
      for (const sockets of [this.#unused, this.#used]) {
        if (sockets.get(name) === socket) sockets.delete(name);
      }
    });
    if (this.#unused.size + this.#used.size >= this.#max) this.#closeFirst();
    this.#unused.set(name, socket);
  }

  /** Notes that a connection has finished its handshake, or has sent a request. */
  use(socket: SocketAddresses): void {
    const name = nameOf(socket);
    const found = this.#unused.get(name) ?? this.#used.get(name);
    if (found === undefined) return;
    this.#unused.delete(name);
    this.#used.delete(name);
    this.#used.set(name, found);
  }

  closeAll(): void {
    for (const socket of [...this.#unused.values(), ...this.#used.values()]) socket.destroy();
  }

  #closeFirst(): void {
    for (const [name, socket] of this.#unused.size > 0 ? this.#unused : this.#used) {
      this.#unused.delete(name);
      this.#used.delete(name);
      socket.destroy();
      return;
    }
  }
}

function nameOf({ localAddress, remoteAddress, remotePort }: SocketAddresses): string {
  return `${localAddress} ${remoteAddress} ${remotePort}`;
}
