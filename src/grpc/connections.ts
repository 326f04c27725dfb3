import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { LINGER_MS } from '../h2/serving/socket-server.js';

export { formatHostPort } from '../h2/serving/peer-name.js';

/** The HTTP/2 sessions of one server of node:http2, so that they can be closed politely. */
export class Connections {
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  /** Name of the connection that is being added. */
  #peer = '';

  /**
   * Follows every session of `server`. `onBroken` is told of connections that do not begin as HTTP/2;
   * connections that are merely lost are nobody's news.
   */
  constructor(server: Http2Server, onBroken: (message: string) => void) {
    this.#server = server;
    server.on('session', (session: ServerHttp2Session) => {
      const peer = this.#peer;
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      let greeted = false;
      session.once('remoteSettings', () => {
        greeted = true;
      });
      session.on('error', (error: NodeJS.ErrnoException) => {
        // Later errors are no news either: grpc-go ends every connection with a GOAWAY that Node calls a protocol
        // error.
        if (greeted || error.code?.startsWith('ERR_HTTP2_') !== true) return;
        onBroken(`the connection from ${peer} does not speak HTTP/2: ${error.message}`);
      });
    });
  }

  /** Serves a connection, decrypted already; `peer` is its name for logs. */
  add(socket: Socket, peer: string): void {
    // After our half is closed the peer has to close its own; one that does not would hold the socket for ever.
    socket.once('finish', () => {
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    });
    this.#peer = peer;
    // Node's documented way to inject connections; 'session' is told meanwhile.
    this.#server.emit('connection', socket);
  }

  /** Sends GOAWAY everywhere: idle connections close now, the others when their last stream ends. */
  closeGracefully(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }
}
