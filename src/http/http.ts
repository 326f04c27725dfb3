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
import { type BodyLimits, type BodyReadFailure, RequestBodies } from './request-bodies.js';
import { OutgoingTexts } from './views/outgoing-texts.js';
import type { TextPages } from './views/text-view.js';
import { ViewSlices, type ViewSteps } from './views/view-slices.js';

/** What an endpoint answers. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  /** A long one in pages, which those who ask for it share; or events, which go on. */
  readonly body: string | TextPages | EventFeed;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is known of a call before its body is read. */
export interface HttpHead {
  /** In capitals, as in POST. */
  readonly method: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The IP address that the call comes from; '' where the connection has ended. */
  readonly peer: string;
}

/** What an endpoint is asked. */
export interface HttpCall extends HttpHead {
  /** In pieces, of which few are short; none unless the endpoint reads bodies. */
  readonly body: readonly Buffer[];
  /** What the call came on: long work for one connection waits for other such work for it. */
  readonly connection: object;
  /** True once nobody waits for the answer any more. */
  isCancelled(): boolean;
}

/**
 * Whatever the method of a request is, its answer is the same, as in the reference, where {@link HttpEndpoint.refuse}
 * does not say otherwise.
 */
export interface HttpEndpoint {
  readonly path: string;
  /** One line for the list of endpoints. */
  readonly help: string;
  /** Reads bodies of at most so many bytes; absent: a body is not looked at. */
  readonly maxBodyBytes?: number;
  /** Whether the answer shows anything of the service, so that no page of another site may see it; absent: it does. */
  exposesData?(head: HttpHead): boolean;
  /** The answer to a call whose body is not worth reading; undefined: it goes on. */
  refuse?(head: HttpHead): HttpAnswer | undefined;
  /** How the endpoint words failures of the port; absent: as {@link failed} does. */
  failed?(status: number, reason: string, headers?: HttpAnswer['headers']): HttpAnswer;
  answer(call: HttpCall): HttpAnswer | Promise<HttpAnswer>;
}

export interface HttpListener {
  readonly port: number;
  /** Reads no further bodies; resolves when calls with a body are answered, at the latest after `graceMs`. */
  drain(graceMs: number): Promise<void>;
  /** Cuts what is open and stops listening. */
  close(): Promise<void>;
}

export interface HttpOptions {
  readonly endpoints: readonly HttpEndpoint[];
  /** Answers where no endpoint is; by default with a list of those there are. */
  readonly notFound?: (path: string) => HttpAnswer;
  /** Absent: clear text. */
  readonly tls?: TlsSource | undefined;
  /** Default: BODY_LIMITS. */
  readonly bodyLimits?: BodyLimits;
  /** Most connections at once; see {@link HttpConnections}. Default: 1000. */
  readonly maxConnections?: number;
  /** The texts that are being sent, of all ports of the process. */
  readonly outgoingTexts?: OutgoingTexts;
  /** Where long answers are sent in slices, with the views of the process. */
  readonly slices?: ViewSlices;
  readonly onError: (error: unknown) => void;
}

/** A caller who takes longer to send a request gets 408: slow ones must not hold what is bounded. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** How often Node.js looks for those. */
const CHECK_MS = 5000;
export const MAX_CONNECTIONS = 1000;
/** Why a request failed, for people. */
const REASON_HEADER = 'x-weir-reason';
const MAX_REASON_LENGTH = 500;
const NO_BODY: readonly Buffer[] = [];
/** The answer to a request whose body is not read to its end. */
const CLOSE = { connection: 'close' };

export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const JSON_TYPE = 'application/json';

/** A plain text answer; a line end is part of `body`. */
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
 * A failure as Go's http.Error writes it, and so the reference: the first line is the status in words. The reason is
 * the second one, for people, and stands in a header, for programs.
 */
export function failed(
  status: keyof typeof STATUS_TEXTS,
  reason: string,
  headers?: HttpAnswer['headers'],
): HttpAnswer {
  // Reasons may quote what a caller sent, and header values are printable ASCII.
  const shown = reason.replaceAll(/[^\x20-\x7e]+/g, '?').slice(0, MAX_REASON_LENGTH);
  return text(status, `${STATUS_TEXTS[status]}\n${shown}\n`, { ...headers, [REASON_HEADER]: shown });
}

const INTERNAL_ERROR = 'internal error';
const UNKNOWN_EXPECTATION = text(417, 'the only expectation that is met is 100-continue\n');

/** One HTTP port: finds the endpoint of a request and runs it. */
class HttpPort {
  readonly calls: RequestBodies;
  readonly #endpoints: ReadonlyMap<string, HttpEndpoint>;
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.calls = new RequestBodies(options.bodyLimits);
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
      return text(404, `not found; here are ${[...this.#endpoints.keys()].join(' ')}\n`);
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

const WITHOUT_BODY: Readonly<Record<BodyReadFailure, readonly [keyof typeof STATUS_TEXTS, string]>> = {
  draining: [503, 'this server ends'],
  busy: [503, 'too many requests at once'],
  'too large': [413, 'the body is longer than GRPC_MAX_MESSAGE_BYTES'],
  gone: [400, 'the body was cut off'],
};

/** The refusal of a request with several Host headers, of which a proxy may have looked at another (RFC 9112, 3.2). */
function duplicateHostAnswer(
  { failed }: HttpEndpoint,
  { headersDistinct }: IncomingMessage,
): HttpAnswer | undefined {
  if ((headersDistinct['host']?.length ?? 0) < 2) return undefined;
  const reason = 'there are several Host headers';
  return failed?.(400, reason, CLOSE) ?? text(400, `${reason}\n`, CLOSE);
}

/** The answer to a request whose body was not read. */
function withoutBody(endpoint: HttpEndpoint, why: BodyReadFailure): HttpAnswer {
  const [status, reason] = WITHOUT_BODY[why];
  if (endpoint.failed === undefined) return failed(status, reason, CLOSE);
  const most = `the body is longer than ${endpoint.maxBodyBytes} bytes`;
  return endpoint.failed(status, why === 'too large' ? most : reason, CLOSE);
}

/** Sends an answer; a long one page by page, as its reader takes them. */
class Sender {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #held: OutgoingTexts;
  readonly #slices: ViewSlices;

  constructor(request: IncomingMessage, response: ServerResponse, held: OutgoingTexts, slices: ViewSlices) {
    this.#request = request;
    this.#response = response;
    this.#held = held;
    this.#slices = slices;
  }

  send(answer: HttpAnswer): void {
    const response = this.#response;
    if (response.destroyed) return;
    const { status, contentType, headers } = answer;
    const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
    const length = 'follow' in body ? {} : { 'content-length': 'pages' in body ? body.bytes : body.length };
    response.writeHead(status, {
      'content-type': contentType,
      ...length,
      ...(status >= 400 ? { 'x-content-type-options': 'nosniff' } : {}),
      ...headers,
    });
    if (this.#request.method === 'HEAD') response.end();
    else if ('follow' in body) sendEvents(response, body);
    else if ('pages' in body) this.#sendPages(body);
    else response.end(body);
  }

  #sendPages(text: TextPages): void {
    const response = this.#response;
    const release = this.#held.hold(text, () => this.#request.socket.destroy());
    const done = text.retain?.();
    response.once('close', () => {
      release();
      done?.();
    });
    void this.#slices.run(sending(response, text.pages));
  }
}

/** Sends pages as they are taken, and ends the answer. */
function* sending(response: ServerResponse, pages: readonly Buffer[]): ViewSteps<never, void> {
  for (const page of pages) {
    if (response.destroyed) return;
    yield response.write(page) ? '' : drained(response);
  }
  response.end();
}

/** Resolves when more can be written, or never will be. */
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
 * Serves a handful of endpoints over HTTP/1.1, one request at a time on each connection. `port` 0 takes a free one.
 * Rejects with Node's system error when the address cannot be had.
 */
export function listenHttp(host: string, port: number, options: HttpOptions): Promise<HttpListener> {
  const httpPort = new HttpPort(options);
  const held = options.outgoingTexts ?? new OutgoingTexts();
  const slices = options.slices ?? new ViewSlices();
  const timeouts = { requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECK_MS };
  const serve = (
    request: IncomingMessage,
    response: ServerResponse,
    answer: () => HttpAnswer | Promise<HttpAnswer>,
  ): void => {
    const connection = connectionOf(request);
    response.once('close', () => connection.endRequest());
    connection.beginRequest(request, () => {
      const sender = new Sender(request, response, held, slices);
      void Promise.resolve(answer()).then((given) => sender.send(given));
    });
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response, () => httpPort.answer(request, response));
  };
  const { tls } = options;
  const server = tls === undefined ? createServer(timeouts, onRequest) : tlsServer(tls, timeouts, onRequest);
  // Node.js would answer those at once, however many there are.
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

/** A server over TLS, which takes new certificates as they come. */
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
 * Puts `connections` between the sockets that `event` brings to `server` and what Node.js does with them: it takes any
 * stream for a connection.
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

/** Tells `handshakes` of those that begin, before Node.js knows of them, and of those that come to their end. */
function followHandshakes(server: Server, handshakes: Handshakes): void {
  server.prependListener('connection', (socket: Socket) => handshakes.begin(socket));
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    handshakes.end(socket);
    // Cheap to ask for, and dear to do.
    socket.disableRenegotiation();
  });
}
