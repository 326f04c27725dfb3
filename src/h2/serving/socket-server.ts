import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { plural } from '../../runtime/texts.js';
import { throttledLog } from '../../runtime/timers.js';
import { ERROR_CODE } from '../failure.js';
import {
  hasSubjectAltName,
  secureContextOptions,
  type TlsMaterial,
  type TlsOptions,
} from '../tls-material.js';
import { type ListenAddress, listen, peerName } from './listen.js';

/** Time in milliseconds that a peer has to close its side after we have closed ours. The socket is then destroyed. */
export const LINGER_MS = 1000;
/** Default timeout in milliseconds of a TLS handshake, and of the HTTP/2 preface. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Idle time in milliseconds after which TCP probes a connection. */
const TCP_KEEP_ALIVE_MS = 60_000;
/** The server's preface (RFC 9113 section 3.4): an empty SETTINGS frame. */
const EMPTY_SETTINGS = Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0);

export interface SocketServerOptions {
  /** TLS configuration with ALPN `h2`. If absent, the server uses cleartext. */
  readonly tls?: TlsOptions | undefined;
  /** Timeout of a TLS handshake, in milliseconds. */
  readonly handshakeTimeoutMs: number;
  /** Maximum number of open sockets. Further sockets are closed immediately after they are accepted. */
  readonly maxConnections: number;
  /** Handles a new HTTP/2 connection, in cleartext or decrypted. `peer` names it in logs. */
  onSocket(socket: Socket, peer: string): void;
  /** Reports failures to accept connections. */
  onError(error: unknown): void;
  /** Reports, in a sentence, a connection that is refused or fails its TLS handshake. */
  onBadConnection(message: string): void;
}

/** Listens on TCP or a Unix domain socket, in cleartext or with TLS, and tracks all open sockets. */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server;
  readonly #tls: TlsServer | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #waiting: (() => void)[] = [];
  #path: string | undefined;
  /** Failures to accept, such as too many open files, and refused connections can be very frequent. */
  readonly #mayLogFailure = throttledLog();
  readonly #mayLogRefusal = throttledLog();
  /** Number of sockets refused since the last log message about them. */
  #refused = 0;

  /** Throws TlsMaterialError if the certificates cannot be used. */
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
        // Node would close the socket without any message. #rejectionReason performs the same check and reports the
        // reason.
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

  /**
   * Uses these certificates for new connections. Throws an Error if they cannot be used; the previous ones then stay in
   * use.
   */
  setTls(material: TlsMaterial): void {
    if (this.#tls === undefined) throw new Error('this server does not use TLS');
    if ((material.clientCa === undefined) !== (this.#options.tls?.material.clientCa === undefined)) {
      throw new Error('the client certificate requirement cannot change while the server runs');
    }
    this.#tls.setSecureContext(secureContextOptions(material));
  }

  stopListening(): void {
    if (this.#server.listening) this.#server.close();
  }

  /** Closes every connection immediately. */
  closeNow(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resolves when no socket is open. */
  empty(): Promise<void> {
    if (this.#sockets.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Called for all TCP connections, including those with TLS. */
  #onConnection(socket: Socket): void {
    if (this.#sockets.size >= this.#options.maxConnections) {
      this.#refuse(socket);
      return;
    }
    this.#sockets.add(socket);
    // A lost connection is not an error.
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    });
    // This is Node's documented way to inject connections. If the TLS server listened itself, it would set up TLS
    // before the connection can be refused.
    if (this.#tls !== undefined) this.#tls.emit('connection', socket);
    else this.#options.onSocket(socket, peerName(socket, this.#path));
  }

  /** Refuses a connection because the maximum number is reached. */
  #refuse(socket: Socket): void {
    socket.on('error', () => {});
    socket.destroy();
    this.#refused++;
    if (!this.#mayLogRefusal()) return;
    const count = this.#refused;
    this.#refused = 0;
    this.#options.onBadConnection(
      `${plural(count, 'connection was', 'connections were')} closed immediately: ` +
        `${plural(this.#options.maxConnections, 'is', 'are')} open, which is the maximum`,
    );
  }

  #onSecureConnection(socket: TLSSocket): void {
    // RFC 9113 section 9.2.1 forbids renegotiation with TLS 1.2, which is cheap to request and expensive to perform.
    // Node reports an attempt as an error but leaves the socket open.
    socket.disableRenegotiation();
    socket.on('error', () => socket.destroy());
    const peer = peerName(socket, this.#path);
    const refusal = this.#rejectionReason(socket);
    if (refusal === undefined) {
      this.#options.onSocket(socket, peer);
      return;
    }
    this.#options.onBadConnection(`the connection from ${peer} was refused: ${refusal}`);
    // Data from the client is read and dropped. If it stayed unread, the system would send a reset, and the reason
    // would be lost.
    socket.resume();
    socket.end(Buffer.concat([EMPTY_SETTINGS, goAway(ERROR_CODE.INADEQUATE_SECURITY, refusal)]));
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  #rejectionReason(socket: TLSSocket): string | undefined {
    if (socket.alpnProtocol !== 'h2') return 'the client did not negotiate HTTP/2 (TLS ALPN protocol h2)';
    const { tls } = this.#options;
    if (tls?.material.clientCa === undefined) return undefined;
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return 'the client did not present a certificate';
    if (!socket.authorized) return `the client's certificate was rejected: ${socket.authorizationError}`;
    if (tls.clientSan !== undefined && !hasSubjectAltName(certificate, tls.clientSan)) {
      return `the client's certificate does not contain the name ${tls.clientSan}`;
    }
    return undefined;
  }

  #onTlsClientError(error: NodeJS.ErrnoException & { readonly reason?: string }, socket: TLSSocket): void {
    // The client closed the connection before the handshake was complete, as port probes do.
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

/** Returns a GOAWAY frame that names no stream as processed (RFC 9113 section 6.8). */
function goAway(errorCode: number, debug: string): Buffer {
  const text = Buffer.from(debug);
  const frame = Buffer.alloc(17 + text.length);
  frame.writeUIntBE(8 + text.length, 0, 3);
  frame.writeUInt8(7, 3);
  frame.writeUInt32BE(errorCode, 13);
  frame.set(text, 17);
  return frame;
}
