import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { HeldTexts } from '../views/held-texts.js';
import type { TextPages } from '../views/text-view.js';
import { ViewSlices, type ViewSteps } from '../views/view-slices.js';
import { BodyCalls, type BodyLimits, type NoBody } from './body-calls.js';
import { connectionOf, HttpConnections } from './http-connections.js';

/** What an endpoint answers. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  /** A long one in pages, which those who ask for it share. */
  readonly body: string | TextPages;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What an endpoint is asked. */
export interface HttpCall {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** In pieces, of which few are short; none unless the endpoint reads bodies. */
  readonly body: readonly Buffer[];
  /** What the call came on: long work for one connection waits for other such work for it. */
  readonly connection: object;
  /** True once nobody waits for the answer any more. */
  gone(): boolean;
}

/** Whatever the method of a request is, its answer is the same, as in the reference. */
export interface HttpEndpoint {
  readonly path: string;
  /** One line for the list of endpoints. */
  readonly help: string;
  /** Reads bodies of at most so many bytes; absent: a body is not looked at. */
  readonly maxBodyBytes?: number;
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
  /** Default: BODY_LIMITS. */
  readonly bodyLimits?: BodyLimits;
  /** Most connections at once; see {@link HttpConnections}. Default: 1000. */
  readonly maxConnections?: number;
  /** The texts that are being sent, of all ports of the process. */
  readonly heldTexts?: HeldTexts;
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
  const answer = { status, contentType: TEXT_TYPE, body };
  return headers === undefined ? answer : { ...answer, headers };
}

const STATUS_TEXTS = {
  400: 'Bad Request',
  413: 'Request Entity Too Large',
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

const UNKNOWN_EXPECTATION = text(417, 'the only expectation that is met is 100-continue\n');

/** One HTTP port: finds the endpoint of a request and runs it. */
class HttpPort {
  readonly calls: BodyCalls;
  readonly #endpoints: ReadonlyMap<string, HttpEndpoint>;
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.calls = new BodyCalls(options.bodyLimits);
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
      const { headers } = request;
      const { socket: connection } = request;
      const gone = (): boolean => response.destroyed;
      if (endpoint.maxBodyBytes === undefined)
        return await endpoint.answer({ query, headers, body: NO_BODY, connection, gone });
      const body = await this.calls.read(request, response, endpoint.maxBodyBytes);
      if (typeof body === 'string') return withoutBody(body);
      return await endpoint.answer({ query, headers, body, connection, gone });
    } catch (error) {
      this.#options.onError(error);
      return text(500, 'internal error\n');
    }
  }
}

/** The answer to a request whose body was not read. */
function withoutBody(reason: NoBody): HttpAnswer {
  switch (reason) {
    case 'draining':
      return failed(503, 'this server ends', CLOSE);
    case 'busy':
      return failed(503, 'too many requests at once', CLOSE);
    case 'too large':
      return failed(413, 'the body is longer than GRPC_MAX_MESSAGE_BYTES', CLOSE);
    case 'gone':
      return failed(400, 'the body was cut off', CLOSE);
  }
}

/** Sends an answer; a long one page by page, as its reader takes them. */
class Sender {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #held: HeldTexts;
  readonly #slices: ViewSlices;

  constructor(request: IncomingMessage, response: ServerResponse, held: HeldTexts, slices: ViewSlices) {
    this.#request = request;
    this.#response = response;
    this.#held = held;
    this.#slices = slices;
  }

  send(answer: HttpAnswer): void {
    const response = this.#response;
    if (response.destroyed) return;
    const text = typeof answer.body === 'string' ? undefined : answer.body;
    const body = Buffer.from(typeof answer.body === 'string' ? answer.body : '');
    response.writeHead(answer.status, {
      'content-type': answer.contentType,
      'content-length': text === undefined ? body.length : text.bytes,
      ...(answer.status >= 400 ? { 'x-content-type-options': 'nosniff' } : {}),
      ...answer.headers,
    });
    if (this.#request.method === 'HEAD') response.end();
    else if (text === undefined) response.end(body);
    else this.#sendPages(text);
  }

  #sendPages(text: TextPages): void {
    const response = this.#response;
    const release = this.#held.hold(text, () => this.#request.socket.destroy());
    const done = text.keep?.();
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
  const held = options.heldTexts ?? new HeldTexts();
  const slices = options.slices ?? new ViewSlices();
  const timeouts = { requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECK_MS };
  const serve = (
    request: IncomingMessage,
    response: ServerResponse,
    answer: () => HttpAnswer | Promise<HttpAnswer>,
  ): void => {
    const connection = connectionOf(request);
    response.once('close', () => connection.answered());
    connection.began(request, () => {
      const sender = new Sender(request, response, held, slices);
      void Promise.resolve(answer()).then((given) => sender.send(given));
    });
  };
  const server = createServer(timeouts, (request, response) => {
    serve(request, response, () => httpPort.answer(request, response));
  });
  // Node.js would answer those at once, however many there are.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response, () => UNKNOWN_EXPECTATION);
  });
  followConnections(server, new HttpConnections(options.maxConnections ?? MAX_CONNECTIONS));
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
          }),
      });
    });
  });
}

/**
 * Puts `connections` between the sockets of `server` and what Node.js does with them: it takes any stream for a
 * connection.
 */
function followConnections(server: Server, connections: HttpConnections): void {
  const [serve] = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => serve?.call(server, connections.accept(socket)));
}
