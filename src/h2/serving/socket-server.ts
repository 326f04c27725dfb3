import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { quantity } from '../../quantity.js';
import { throttledLog } from '../../runtime/throttled-log.js';
import { ERROR_CODE } from '../error-code.js';
import {
  hasSubjectAltName,
  secureContextOptions,
  type TlsMaterial,
  type TlsOptions,
} from '../tls-material.js';
import { type ListenAddress, listen } from './listen.js';
import { peerName } from './peer-name.js';

/** How long a peer may take to close its side after we have closed ours, before its socket is cut. Milliseconds. */
export const LINGER_MS = 1000;
/** Usual bound of a TLS handshake, and of the beginning of HTTP/2. Milliseconds. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/** A connection that is silent for this long is probed by TCP. Milliseconds. */
const TCP_KEEP_ALIVE_MS = 60_000;
/** The server's preface (RFC 9113 section 3.4): an empty SETTINGS frame. */
const EMPTY_SETTINGS = Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0);

export interface SocketServerOptions {
  /** Serve TLS with ALPN `h2` instead of clear text. */
  readonly tls?: TlsOptions | undefined;
  /** Longest time a TLS handshake may take, in milliseconds. */
  readonly handshakeTimeoutMs: number;
  /** Sockets at a time; one more is closed as soon as it is there. */
  readonly maxConnections: number;
  /** A connection to serve HTTP/2 on, in clear text or decrypted; `peer` is its name for logs. */
  onSocket(socket: Socket, peer: string): void;
  /** Told of failures to accept. */
  onError(error: unknown): void;
  /** Told, in a sentence, of each connection that is refused or fails its TLS handshake. */
  onBadConnection(message: string): void;
}

/** Listens on TCP or a Unix domain socket, in clear text or TLS, and knows every socket that is open. */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server;
  readonly #tls: TlsServer | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #waiting: (() => void)[] = [];
  #path: string | undefined;
  /** Failures to accept, such as too many open files, and refusals come in floods. */
  readonly #mayLogFailure = throttledLog();
  readonly #mayLogRefusal = throttledLog();
  /** Sockets refused since that was last told. */
  #refused = 0;

  /** Throws TlsMaterialError when the certificates cannot be used. */
  constructor(options: SocketServerOptions) {
    this.#options = options;
    const tcp = { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
    this.#server = createTcpServer(tcp);
    if (options.tls !== undefined) {
      const mutual = options.tls.material.clientCa !== undefined;
      this.#tls = createTlsServer({
        ...secureContextOptions(options.tls.material),
        ALPNProtocols: ['h2'],
        handshakeTimeout: options.handshakeTimeoutMs,
        requestCert: mutual,
        // Node would cut the socket without a word to anybody; #refusal asks the same question and says why.
        rejectUnauthorized: false,
      });
      this.#tls.on('secureConnection', (socket) => this.#onSecureConnection(socket));
      this.#tls.on('tlsClientError', (error, socket) => this.#onTlsClientError(error, socket));
    }
    this.#server.on('connection', (socket: Socket) => this.#onConnection(socket));
  }

  /** See {@link listen}. */
  async listen(address: ListenAddress): Promise<number> {
    if ('path' in address) this.#path = address.path;
    const port = await listen(this.#server, address);
    this.#server.on('error', (error) => this.#onListenerError(error));
    return port;
  }

  /** New connections get these certificates. Throws an Error when they cannot be used: the old ones stay. */
  setTls(material: TlsMaterial): void {
    if (this.#tls === undefined) throw new Error('this server does not serve TLS');
    if ((material.clientCa === undefined) !== (this.#options.tls?.material.clientCa === undefined)) {
      throw new Error('whether clients must show certificates cannot change while serving');
    }
    this.#tls.setSecureContext(secureContextOptions(material));
  }

  stopListening(): void {
    if (this.#server.listening) this.#server.close();
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

  /** Told of TCP connections, under TLS too. */
  #onConnection(socket: Socket): void {
    if (this.#sockets.size >= this.#options.maxConnections) {
      this.#refuse(socket);
      return;
    }
    this.#sockets.add(socket);
    // A lost connection is nobody's news.
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    });
    // Node's documented way to inject connections. A server of TLS that listened itself would make its part before
    // anybody can refuse it.
    if (this.#tls !== undefined) this.#tls.emit('connection', socket);
    else this.#options.onSocket(socket, peerName(socket, this.#path));
  }

  /** One connection too many. */
  #refuse(socket: Socket): void {
    socket.on('error', () => {});
    socket.destroy();
    this.#refused++;
    if (!this.#mayLogRefusal()) return;
    const count = this.#refused;
    this.#refused = 0;
    this.#options.onBadConnection(
      `${quantity(count, 'connection was', 'connections were')} closed at once: ` +
        `${quantity(this.#options.maxConnections, 'is', 'are')} open, and no more are allowed`,
    );
  }

  #onSecureConnection(socket: TLSSocket): void {
    // RFC 9113 section 9.2.1: no renegotiation of TLS 1.2, which is cheap to ask for and dear to do. Node tells of it,
    // and leaves the socket open.
    socket.disableRenegotiation();
    socket.on('error', () => socket.destroy());
    const peer = peerName(socket, this.#path);
    const refusal = this.#rejectionReason(socket);
    if (refusal === undefined) {
      this.#options.onSocket(socket, peer);
      return;
    }
    this.#options.onBadConnection(`the connection from ${peer} was refused: ${refusal}`);
    // What the client sends is dropped; left unread it would make the system send a reset, and the reason be lost.
    socket.resume();
    socket.end(Buffer.concat([EMPTY_SETTINGS, goAway(ERROR_CODE.INADEQUATE_SECURITY, refusal)]));
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  /** Why this client is not served; undefined when it is. */
  #rejectionReason(socket: TLSSocket): string | undefined {
    if (socket.alpnProtocol !== 'h2') return 'the client did not negotiate HTTP/2 (TLS ALPN protocol h2)';
    const { tls } = this.#options;
    if (tls?.material.clientCa === undefined) return undefined;
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return 'the client showed no certificate';
    if (!socket.authorized) return `the client's certificate is not accepted: ${socket.authorizationError}`;
    if (tls.clientSan !== undefined && !hasSubjectAltName(certificate, tls.clientSan)) {
      return `the client's certificate does not hold the name ${tls.clientSan}`;
    }
    return undefined;
  }

  #onTlsClientError(error: NodeJS.ErrnoException & { readonly reason?: string }, socket: TLSSocket): void {
    // Gone before the handshake was complete, as port probes do.
    if (error.code === 'ECONNRESET') return;
    const peer = peerName(socket, this.#path);
    this.#options.onBadConnection(
      `the connection from ${peer} failed its TLS handshake: ${error.reason ?? error.message}`,
    );
    socket.destroy();
  }

  #onListenerError(error: unknown): void {
    if (this.#mayLogFailure()) this.#options.onError(error);
  }
}

/** A GOAWAY frame that names no stream as served (RFC 9113 section 6.8). */
function goAway(errorCode: number, debug: string): Buffer {
  const text = Buffer.from(debug);
  const frame = Buffer.alloc(17 + text.length);
  frame.writeUIntBE(8 + text.length, 0, 3);
  frame.writeUInt8(7, 3);
  frame.writeUInt32BE(errorCode, 13);
  frame.set(text, 17);
  return frame;
}
