import type { Socket } from 'node:net';

/** Maximum number of concurrent TLS handshakes on an HTTP port. */
export const MAX_HANDSHAKES = 200;
/** Timeout of a handshake, in milliseconds. */
export const HTTP_HANDSHAKE_MS = 10_000;

/** The addresses of a connection, which its TCP socket and its TLS socket share. */
type SocketEndpoints = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>;

/**
 * Limits the number of connections in their TLS handshake. A further connection closes the oldest one, so a client that
 * starts handshakes without completing them can block others only briefly.
 */
export class Handshakes {
  readonly #maxHandshakes: number;
  /** Oldest first. */
  readonly #sockets = new Map<string, Socket>();

  constructor(most = MAX_HANDSHAKES) {
    this.#maxHandshakes = most;
  }

  /** Tracks an accepted socket. */
  begin(socket: Socket): void {
    const name = nameOf(socket);
    // A lost connection is not an error.
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#sockets.get(name) === socket) this.#sockets.delete(name);
    });
    if (this.#sockets.size >= this.#maxHandshakes) {
      const [oldest] = this.#sockets;
      if (oldest !== undefined) {
        this.#sockets.delete(oldest[0]);
        oldest[1].destroy();
      }
    }
    this.#sockets.set(name, socket);
  }

  /** Stops tracking a connection whose handshake is complete. */
  end(secured: SocketEndpoints): void {
    this.#sockets.delete(nameOf(secured));
  }

  /** Closes all tracked connections. */
  cut(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}

function nameOf({ localAddress, localPort, remoteAddress, remotePort }: SocketEndpoints): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}
