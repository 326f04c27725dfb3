import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { secureContextOptions, type TlsSource } from '../h2/tls-material.js';
import { type EventFeed, sendEvents } from './event-feed.js';
import { Handshakes, HTTP_HANDSHAKE_MS } from './handshakes.js';
import { connectionOf, HttpConnections } from './http-connections.js';
import { OutgoingTexts } from './outgoing-texts.js';
import { type BodyReadFailure, RequestBodies } from './request-bodies.js';

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
  /** Maximum bytes of bodies held together. Default: MAX_HELD_BODY_BYTES. */
  readonly maxHeldBodyBytes?: number;
  /** Maximum number of connections; see {@link HttpConnections}. Default: 1000. */
  readonly maxConnections?: number;
  /** The texts that are being sent on all ports of the process. */
  readonly outgoingTexts?: OutgoingTexts;
  readonly onError: (error: unknown) => void;
}

/**
 * Time in milliseconds for a client to send a request, after which it gets 408, so that slow clients do not occupy
 * limited connections.
 */
export const REQUEST_TIMEOUT_MS = 30_000;
/** Bytes of a long response that are written at once. TLS encrypts them in about 50 microseconds. */
const PIECE_BYTES = 64 * 1024;
/** Interval in milliseconds at which Node.js checks for slow requests. */
const CHECK_MS = 5000;
export const MAX_CONNECTIONS = 1000;
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

const STATUS_TEXTS = {
  400: 'Bad Request',
  403: 'Forbidden',
  413: 'Request Entity Too Large',
  421: 'Misdirected Request',
  503: 'Service Unavailable',
} as const;

/**
 * Creates a failure in the format of Go's http.Error, which envoyproxy/ratelimit uses: the first line is the text of
 * the status. The second line is the reason, for people, which a header repeats for programs.
 */
export function failed(
  status: keyof typeof STATUS_TEXTS,
  reason: string,
  headers?: HttpAnswer['headers'],
): HttpAnswer {
  // Reasons may quote data of a caller, and header values must be printable ASCII.
  const shown = reason.replaceAll(/[^\x20-\x7e]+/g, '?').slice(0, MAX_REASON_LENGTH);
  return text(status, `${STATUS_TEXTS[status]}\n${shown}\n`, { ...headers, [REASON_HEADER]: shown });
}

const INTERNAL_ERROR = 'internal error';
const UNKNOWN_EXPECTATION = text(417, 'the only supported expectation is 100-continue\n');

/** One HTTP port: finds and calls the endpoint of a request. */
class HttpPort {
  readonly calls: RequestBodies;
  readonly #endpoints: ReadonlyMap<string, HttpEndpoint>;
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.calls = new RequestBodies(options.maxHeldBodyBytes);
    this.#endpoints = new Map(options.endpoints.map((endpoint) => [endpoint.path, endpoint]));
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<HttpAnswer> {
    const target = request.url ?? '/';
    const question = target.indexOf('?');
    const path = question === -1 ? target : target.slice(0, question);
    const endpoint = this.#endpoints.get(path);
    if (endpoint === undefined) {
      const { notFound } = this.#options;
      if (notFound !== undefined) return notFound(path);
      return text(404, `not found; the available paths are ${[...this.#endpoints.keys()].join(' ')}\n`);
    }
    try {
      const query = new URLSearchParams(question === -1 ? '' : target.slice(question + 1));
      const { headers, method = 'GET' } = request;
      const connection = connectionOf(request);
      const head = { method, query, headers, peer: connection.remoteAddress ?? '' };
      const isCancelled = (): boolean => response.destroyed;
      const refused = endpoint.refuse && (duplicateHostAnswer(endpoint, request) ?? endpoint.refuse(head));
      if (refused !== undefined) return refused;
      if (endpoint.maxBodyBytes === undefined)
        return await endpoint.answer({ body: NO_BODY, connection, isCancelled, ...head });
      const body = await this.calls.read(request, response, endpoint.maxBodyBytes);
      if (typeof body === 'string') return withoutBody(endpoint, body);
      return await endpoint.answer({ body, connection, isCancelled, ...head });
    } catch (error) {
      this.#options.onError(error);
      return endpoint.failed?.(500, INTERNAL_ERROR) ?? text(500, `${INTERNAL_ERROR}\n`);
    }
  }
}

/**
 * Refuses a request with several Host headers, because a proxy may have used a different one (RFC 9112 section 3.2).
 */
function duplicateHostAnswer(
  { failed }: HttpEndpoint,
  { headersDistinct }: IncomingMessage,
): HttpAnswer | undefined {
  if ((headersDistinct['host']?.length ?? 0) < 2) return undefined;
  const reason = 'the request has several Host headers; send exactly one';
  return failed?.(400, reason, CLOSE) ?? text(400, `${reason}\n`, CLOSE);
}

/** Returns the response to a request whose body was not read. */
function withoutBody(endpoint: HttpEndpoint, why: BodyReadFailure): HttpAnswer {
  const fail = endpoint.failed ?? failed;
  switch (why) {
    case 'draining':
      return fail(503, 'the server is shutting down', CLOSE);
    case 'busy':
      return fail(503, 'too many requests at once', CLOSE);
    case 'gone':
      return fail(400, 'the body is incomplete', CLOSE);
    case 'too large': {
      const { maxBodyBytes, bodySetting } = endpoint;
      const named = bodySetting === undefined ? '' : ` (${bodySetting})`;
      return fail(413, `the body is longer than ${maxBodyBytes} bytes${named}`, CLOSE);
    }
  }
}

/** Sends a response. */
function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, contentType, headers, body: text }: HttpAnswer,
  outgoing: OutgoingTexts,
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
  else {
    response.once(
      'close',
      outgoing.hold(body, () => request.socket.destroy()),
    );
    void sendPieces(response, body, outgoing);
  }
}

/** Sends a long text piece by piece as the client reads it, and ends the response. */
async function sendPieces(response: ServerResponse, body: Buffer, outgoing: OutgoingTexts): Promise<void> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    await outgoing.turn();
    if (response.destroyed) return;
    if (!response.write(body.subarray(at, at + PIECE_BYTES))) await drained(response);
  }
  response.end();
}

/** Resolves when more data can be written, or when the response is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off('drain', end);
      response.off('close', end);
      resolve();
    };
    response.on('drain', end);
    response.on('close', end);
  });
}

/**
 * Serves a few endpoints over HTTP/1.1, one request at a time on each connection. `port` 0 selects a free port. Rejects
 * with Node's system error if listening fails.
 */
export function listenHttp(host: string, port: number, options: HttpOptions): Promise<HttpListener> {
  const httpPort = new HttpPort(options);
  const outgoing = options.outgoingTexts ?? new OutgoingTexts();
  const timeouts = { requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECK_MS };
  const serve = (
    request: IncomingMessage,
    response: ServerResponse,
    answer: () => HttpAnswer | Promise<HttpAnswer>,
  ): void => {
    const connection = connectionOf(request);
    response.once('close', () => connection.endRequest());
    connection.beginRequest(request, () => {
      void Promise.resolve(answer()).then((given) => send(request, response, given, outgoing));
    });
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response, () => httpPort.answer(request, response));
  };
  const { tls } = options;
  const server = tls === undefined ? createServer(timeouts, onRequest) : tlsServer(tls, timeouts, onRequest);
  // Node.js would answer all such requests immediately, without a limit.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response, () => UNKNOWN_EXPECTATION);
  });
  const connections = new HttpConnections(options.maxConnections ?? MAX_CONNECTIONS);
  const handshakes = new Handshakes();
  followConnections(server, tls === undefined ? 'connection' : 'secureConnection', connections);
  if (tls !== undefined) followHandshakes(server, handshakes);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', options.onError);
      resolve({
        port: (server.address() as AddressInfo).port,
        drain: (graceMs) => httpPort.calls.drain(graceMs),
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
            handshakes.cut();
          }),
      });
    });
  });
}

/** Creates a TLS server that follows certificate updates. */
function tlsServer(
  source: TlsSource,
  timeouts: ServerOptions,
  onRequest: RequestListener,
): ReturnType<typeof createTlsServer> {
  const secure = secureContextOptions(source.options.material);
  const server = createTlsServer({ ...timeouts, ...secure, handshakeTimeout: HTTP_HANDSHAKE_MS }, onRequest);
  source.follow((material) => server.setSecureContext(secureContextOptions(material)));
  return server;
}

/**
 * Wraps the sockets of `event` as `connections` before Node.js handles them; it accepts any stream as a connection.
 */
function followConnections(
  server: Server,
  event: 'connection' | 'secureConnection',
  connections: HttpConnections,
): void {
  const [serve] = server.listeners(event);
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) => serve?.call(server, connections.accept(socket)));
}

/** Reports new sockets to `handshakes` before Node.js handles them, and completed handshakes. */
function followHandshakes(server: Server, handshakes: Handshakes): void {
  server.prependListener('connection', (socket: Socket) => handshakes.begin(socket));
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    handshakes.end(socket);
    // Renegotiation is cheap to request and expensive to perform.
    socket.disableRenegotiation();
  });
}
