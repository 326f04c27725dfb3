import type { Socket } from 'node:net';

/** Most connections of an HTTP port that are in their TLS handshake at once. */
export const MAX_HANDSHAKES = 200;
/** How long a handshake may take. Milliseconds. */
export const HTTP_HANDSHAKE_MS = 10_000;

/** A connection by its ends: the socket of TCP and that of TLS over it have them in common. */
type SocketEndpoints = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>;

/**
 * Connections in their TLS handshake: only so many. One more closes the oldest of them, so that somebody who begins
 * handshakes and ends none shuts nobody out for longer than it takes to begin the others.
 */
export class Handshakes {
  readonly #most: number;
  /** Oldest first. */
  readonly #sockets = new Map<string, Socket>();

  constructor(most = MAX_HANDSHAKES) {
    this.#most = most;
  }

  /** `socket` was accepted. */
  begin(socket: Socket): void {
    const name = nameOf(socket);
    // A lost connection is nobody's news.
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#sockets.get(name) === socket) this.#sockets.delete(name);
    });
    if (this.#sockets.size >= this.#most) {
      const [oldest] = this.#sockets;
      if (oldest !== undefined) {
        this.#sockets.delete(oldest[0]);
        oldest[1].destroy();
      }
    }
    this.#sockets.set(name, socket);
  }

  /** The handshake that made `secured` is over. */
  end(secured: SocketEndpoints): void {
    this.#sockets.delete(nameOf(secured));
  }

  /** Closes all of them. */
  cut(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}

function nameOf({ localAddress, localPort, remoteAddress, remotePort }: SocketEndpoints): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}
