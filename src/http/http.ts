import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { secureContextOptions, type TlsSource } from '../h2/tls-material.js';
import { ignore } from '../runtime/signal.js';
import { IdleWait } from '../runtime/timers.js';
import { type EventFeed, sendEvents } from './event-feed.js';
import { PacedSocket } from './paced-socket.js';

/** The response of an endpoint. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  /** A text, an encoded text that other responses may share, or a stream of events. */
  readonly body: string | Buffer | EventFeed;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The parts of a request that are known before its body is read. */
export interface HttpHead {
  /** In capital letters, such as POST. */
  readonly method: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The IP address of the client. Empty if the connection has ended. */
  readonly peer: string;
}

/** A request to an endpoint. */
export interface HttpCall extends HttpHead {
  /** Empty unless the endpoint reads bodies. */
  readonly body: Buffer;
  /** Identifies the connection. Long work for one connection waits for other long work for the same connection. */
  readonly connection: object;
  /** Returns whether the client no longer waits for the response. */
  isCancelled(): boolean;
}

/**
 * An endpoint answers every HTTP method in the same way, as envoyproxy/ratelimit does, unless
 * {@link HttpEndpoint.refuse} differs.
 */
export interface HttpEndpoint {
  readonly path: string;
  /** One line for the list of endpoints. */
  readonly help: string;
  /** Maximum length in bytes of bodies to read. If absent, bodies are not read. */
  readonly maxBodyBytes?: number;
  /** The setting of {@link maxBodyBytes}, for messages. */
  readonly bodySetting?: string;
  /**
   * Returns whether the response reveals data of the service, so that pages of other sites must not see it. Default:
   * true.
   */
  exposesData?(head: HttpHead): boolean;
  /** Returns a response without reading the body, or undefined to continue. */
  refuse?(head: HttpHead): HttpAnswer | undefined;
  /** Formats failures of the port. Default: {@link failed}. */
  failed?(status: number, reason: string, headers?: HttpAnswer['headers']): HttpAnswer;
  answer(call: HttpCall): HttpAnswer | Promise<HttpAnswer>;
}

export interface HttpListener {
  readonly port: number;
  /** Reads no further bodies. Resolves when no request with a body is in progress, at most after `graceMs`. */
  drain(graceMs: number): Promise<void>;
  /** Closes open connections and stops listening. */
  close(): Promise<void>;
}

export interface HttpOptions {
  readonly endpoints: readonly HttpEndpoint[];
  /** Answers requests to unknown paths. Default: a list of the endpoints. */
  readonly notFound?: (path: string) => HttpAnswer;
  /** If absent, the port uses cleartext. */
  readonly tls?: TlsSource | undefined;
  /** Maximum number of connections; see {@link OpenConnections}. Default: MAX_CONNECTIONS. */
  readonly maxConnections?: number;
  /** Maximum number of bytes of long texts that clients have not read yet. Default: MAX_UNREAD_BYTES. */
  readonly maxUnreadBytes?: number;
  readonly onError: (error: unknown) => void;
}

export const MAX_CONNECTIONS = 256;
export const MAX_UNREAD_BYTES = 32 * 1024 * 1024;
/** Bytes of a long response that are written at once. TLS encrypts them in about 50 microseconds. */
const PIECE_BYTES = 64 * 1024;
/** Bounds of Node's HTTP server. Times are in milliseconds. */
export const HTTP_BOUNDS = {
  maxHeaderSize: 16 * 1024,
  // The time for a client to send a whole request, after which it gets 408.
  requestTimeout: 30_000,
  headersTimeout: 30_000,
  connectionsCheckingInterval: 5000,
  // Node would answer any number of such requests at once. HttpPort refuses them.
  requireHostHeader: false,
} as const;
/** Time in milliseconds for a TLS handshake. */
export const HANDSHAKE_MS = 10_000;
/** Time in milliseconds after which a connection without traffic is closed during a request or a response. */
export const SILENCE_MS = 30_000;
/** Header with the reason of a failure, for people. */
const REASON_HEADER = 'x-weir-reason';
const MAX_REASON_LENGTH = 500;
const NO_BODY = Buffer.alloc(0);
/** Headers of a response to a request whose body is not read to the end. */
const CLOSE = { connection: 'close' };

export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const JSON_TYPE = 'application/json';

/** Creates a plain text response. `body` must include the final line end. */
export function text(status: number, body: string, headers?: HttpAnswer['headers']): HttpAnswer {
  return { status, contentType: TEXT_TYPE, body, ...(headers && { headers }) };
}

/**
 * Creates a failure in the format of Go's http.Error, which envoyproxy/ratelimit uses: the first line is the text of
 * the status. The second line is the reason, for people, which a header repeats for programs.
 */
export function failed(status: number, reason: string, headers?: HttpAnswer['headers']): HttpAnswer {
  // Reasons may quote data of a caller, and header values must be printable ASCII.
  const shown = reason.replaceAll(/[^\x20-\x7e]+/g, '?').slice(0, MAX_REASON_LENGTH);
  // Node has a newer name for this status.
  const name = status === 413 ? 'Request Entity Too Large' : STATUS_CODES[status];
  return text(status, `${name}\n${shown}\n`, { ...headers, [REASON_HEADER]: shown });
}

const INTERNAL_ERROR = 'internal error';

/** One HTTP port: finds and calls the endpoint of a request, and sends its answer. */
class HttpPort {
  readonly connections: OpenConnections;
  readonly #endpoints: ReadonlyMap<string, HttpEndpoint>;
  readonly #options: HttpOptions;
  /** Requests with a body that are not answered yet. */
  #running = 0;
  #draining = false;
  readonly #idle = new IdleWait(() => this.#running === 0);
  /** Responses with long texts that clients have not read yet, oldest first, and the sum of their bytes. */
  readonly #unread = new Map<ServerResponse, number>();
  #unreadBytes = 0;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.connections = new OpenConnections(options.maxConnections ?? MAX_CONNECTIONS);
    this.#endpoints = new Map(options.endpoints.map((endpoint) => [endpoint.path, endpoint]));
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    // Every socket of the port is wrapped.
    const connection = request.socket as unknown as PacedSocket;
    if (connection.response?.writableEnded === false) {
      // A client that does not wait for answers could make weir prepare any number of them.
      connection.destroy();
      return;
    }
    connection.response = response;
    this.connections.use(connection.socket);
    void this.#answer(request, response, connection).then((answer) => this.#send(request, response, answer));
  }

  drain(graceMs: number): Promise<void> {
    this.#draining = true;
    return this.#idle.wait(graceMs);
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    connection: PacedSocket,
  ): Promise<HttpAnswer> {
    const target = request.url ?? '/';
    const question = target.indexOf('?');
    const path = question === -1 ? target : target.slice(0, question);
    const endpoint = this.#endpoints.get(path);
    if (endpoint === undefined) {
      const { notFound } = this.#options;
      if (notFound !== undefined) return notFound(path);
      return text(404, `not found; the available paths are ${[...this.#endpoints.keys()].join(' ')}\n`);
    }
    const fail = endpoint.failed ?? failed;
    const hosts = request.headersDistinct['host']?.length ?? 0;
    // A proxy may have used another one of several hosts (RFC 9112, section 3.2).
    if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1'))
      return fail(400, `the request has ${hosts} Host headers; send exactly one`, CLOSE);
    try {
      const query = new URLSearchParams(question === -1 ? '' : target.slice(question + 1));
      const { headers, method = 'GET' } = request;
      const head = { method, query, headers, peer: connection.socket.remoteAddress ?? '' };
      const refused = endpoint.refuse?.(head);
      if (refused !== undefined) return refused;
      const { maxBodyBytes, bodySetting } = endpoint;
      let body: Buffer | 'too long' | 'incomplete' = NO_BODY;
      if (maxBodyBytes !== undefined) {
        if (this.#draining) return fail(503, 'the server is shutting down', CLOSE);
        this.#running++;
        response.once('close', () => {
          this.#running--;
          this.#idle.check();
        });
        body = await readBody(request, maxBodyBytes);
      }
      if (body === 'incomplete') return fail(400, 'the body is incomplete', CLOSE);
      if (body === 'too long') {
        const named = bodySetting === undefined ? '' : ` (${bodySetting})`;
        return fail(413, `the body is longer than ${maxBodyBytes} bytes${named}`, CLOSE);
      }
      return await endpoint.answer({ body, connection, isCancelled: () => response.destroyed, ...head });
    } catch (error) {
      this.#options.onError(error);
      return endpoint.failed?.(500, INTERNAL_ERROR) ?? text(500, `${INTERNAL_ERROR}\n`);
    }
  }

  #send(
    request: IncomingMessage,
    response: ServerResponse,
    { status, contentType, headers, body: text }: HttpAnswer,
  ): void {
    if (response.destroyed) return;
    const body = typeof text === 'string' ? Buffer.from(text) : text;
    response.writeHead(status, {
      'content-type': contentType,
      ...('follow' in body ? {} : { 'content-length': body.length }),
      ...(status >= 400 ? { 'x-content-type-options': 'nosniff' } : {}),
      ...headers,
    });
    if (request.method === 'HEAD') response.end();
    else if ('follow' in body) sendEvents(response, body);
    else if (body.length <= PIECE_BYTES) response.end(body);
    else this.#sendLong(response, body);
  }

  #sendLong(response: ServerResponse, body: Buffer): void {
    this.#unread.set(response, body.length);
    this.#unreadBytes += body.length;
    response.once('close', () => this.#forget(response));
    const { maxUnreadBytes = MAX_UNREAD_BYTES } = this.#options;
    for (const oldest of this.#unread.keys()) {
      if (this.#unreadBytes <= maxUnreadBytes || oldest === response) break;
      this.#forget(oldest);
      oldest.destroy();
    }
    // An error means that the client is gone.
    pipeline(Readable.from(piecesOf(body)), response, ignore);
  }

  #forget(response: ServerResponse): void {
    this.#unreadBytes -= this.#unread.get(response) ?? 0;
    this.#unread.delete(response);
  }
}

async function* piecesOf(text: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += PIECE_BYTES) {
    yield text.subarray(at, at + PIECE_BYTES);
    await nextTurn();
  }
}

/** Reads a body into one buffer. Chunks that are a byte long would take a hundred times the memory. */
function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | 'too long' | 'incomplete'> {
  // Node.js enforces the length of a body, unless it is chunked.
  const declared = request.headers['content-length'];
  if (Number(declared ?? 0) > maxBytes) return Promise.resolve('too long');
  const body = Buffer.allocUnsafeSlow(declared === undefined ? maxBytes : Number(declared));
  let length = 0;
  return new Promise((resolve) => {
    request.on('data', (chunk: Buffer) => {
      if (length + chunk.length > body.length) resolve('too long');
      else length += chunk.copy(body, length);
    });
    request.once('end', () => resolve(body.subarray(0, length)));
    request.once('error', () => resolve('incomplete'));
    request.once('close', () => resolve('incomplete'));
  });
}

/**
 * Serves a few endpoints over HTTP/1.1, one request at a time on each connection. `port` 0 selects a free port. Rejects
 * with Node's system error if listening fails.
 */
export function listenHttp(host: string, port: number, options: HttpOptions): Promise<HttpListener> {
  const httpPort = new HttpPort(options);
  const { connections } = httpPort;
  const server = options.tls === undefined ? createServer(HTTP_BOUNDS) : tlsServer(options.tls);
  server.timeout = SILENCE_MS;
  paceSockets(server, options.tls === undefined ? 'connection' : 'secureConnection');
  server.prependListener('connection', (socket: Socket) => connections.add(socket));
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    connections.use(socket);
    // Renegotiation is cheap to request and expensive to perform.
    socket.disableRenegotiation();
  });
  const serve = (request: IncomingMessage, response: ServerResponse): void =>
    httpPort.serve(request, response);
  server.on('request', serve);
  // Node would answer any number of requests with an unknown Expect header at once.
  server.on('checkExpectation', serve);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', options.onError);
      resolve({
        port: (server.address() as AddressInfo).port,
        drain: (graceMs) => httpPort.drain(graceMs),
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            connections.closeAll();
          }),
      });
    });
  });
}

function tlsServer(source: TlsSource): ReturnType<typeof createTlsServer> {
  const secure = secureContextOptions(source.options.material);
  const server = createTlsServer({ ...HTTP_BOUNDS, ...secure, handshakeTimeout: HANDSHAKE_MS });
  source.follow((material) => server.setSecureContext(secureContextOptions(material)));
  return server;
}

/** Wraps the sockets of `event` before Node.js handles them; it accepts any stream as a connection. */
function paceSockets(server: Server, event: 'connection' | 'secureConnection'): void {
  const [serve] = server.listeners(event);
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) => serve?.call(server, new PacedSocket(socket)));
}

/** The addresses of a connection, which its TCP socket and its TLS socket share. */
type SocketAddresses = Pick<Socket, 'localAddress' | 'remoteAddress' | 'remotePort'>;

/**
 * The open connections of an HTTP port. A connection above the maximum closes another one, so that a health probe
 * always gets a connection. The first one to be closed is the oldest one that has neither sent a request nor finished a
 * TLS handshake, then the one whose latest request is the oldest.
 */
class OpenConnections {
  readonly #max: number;
  /** Both maps are in the order in which their connections are closed. */
  readonly #unused = new Map<string, Socket>();
  readonly #used = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

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
