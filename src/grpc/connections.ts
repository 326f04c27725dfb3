import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';

/** How long a peer may take to close its side after we have closed ours, before its socket is cut. Milliseconds. */
export const LINGER_MS = 1000;
/** A connection that is silent for this long is probed by TCP. Milliseconds. */
const KEEP_ALIVE_MS = 60_000;

/** The sockets and HTTP/2 sessions of one server, so that they can be closed politely or at once. */
export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #waiting: (() => void)[] = [];

  /**
   * Follows every connection of `server`. `onBroken` is told of connections that do not begin as HTTP/2;
   * connections that are merely lost are nobody's news.
   */
  constructor(server: Http2Server, onBroken: (message: string) => void) {
    // Before the listener that makes the session.
    server.prependListener('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      // Finds peers that vanished without a word.
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      // After our half is closed the peer has to close its own; one that does not would hold the socket for ever.
      socket.once('finish', () => {
        setTimeout(() => socket.destroy(), LINGER_MS).unref();
      });
      socket.once('close', () => {
        this.#sockets.delete(socket);
        if (this.#sockets.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
      });
    });
    server.on('session', (session: ServerHttp2Session) => {
      const { remoteAddress, remotePort } = session.socket;
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      let greeted = false;
      session.once('remoteSettings', () => {
        greeted = true;
      });
      session.on('error', (error: NodeJS.ErrnoException) => {
        // Later errors are no news either: grpc-go ends every connection with a GOAWAY that Node calls a protocol error.
        if (greeted || error.code?.startsWith('ERR_HTTP2_') !== true) return;
        const peer = formatHostPort(remoteAddress, remotePort);
        onBroken(`the connection from ${peer} does not speak HTTP/2: ${error.message}`);
      });
    });
  }

  /** Sends GOAWAY everywhere: idle connections close now, the others when their last stream ends. */
  closeGracefully(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  /** Cuts every connection, whatever runs on it. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resolves when no socket is left. */
  empty(): Promise<void> {
    if (this.#sockets.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** `host:port`, with brackets round IPv6 addresses. */
export function formatHostPort(address: string | undefined, port: number | undefined): string {
  if (address === undefined) return 'unknown';
  const host = address.includes(':') ? `[${address}]` : address;
  return port === undefined ? host : `${host}:${port}`;
}
