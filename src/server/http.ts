import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PostCalls, type PostLimits } from './post-calls.js';

/** What an endpoint answers. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What an endpoint is asked. */
export interface HttpCall {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Empty unless the endpoint takes POST. */
  readonly body: Buffer;
}

export interface HttpEndpoint {
  readonly path: string;
  /** One line for the list of endpoints. */
  readonly help: string;
  /** Takes POST with a body of at most so many bytes; absent: takes GET and HEAD. */
  readonly post?: { readonly maxBodyBytes: number };
  answer(call: HttpCall): HttpAnswer | Promise<HttpAnswer>;
}

export interface HttpListener {
  readonly port: number;
  /** Takes no further POST; resolves when those that run are answered, at the latest after `graceMs`. */
  drain(graceMs: number): Promise<void>;
  /** Cuts what is open and stops listening. */
  close(): Promise<void>;
}

export interface HttpOptions {
  readonly endpoints: readonly HttpEndpoint[];
  /** Answers where no endpoint is; by default with a list of those there are. */
  readonly notFound?: (path: string) => HttpAnswer;
  /** Default: POST_LIMITS. */
  readonly postLimits?: PostLimits;
  readonly onError: (error: unknown) => void;
}

/** A caller who takes longer to send a request gets 408: slow ones must not hold what is bounded. */
const REQUEST_TIMEOUT_MS = 30_000;
const NO_BODY = Buffer.alloc(0);
/** The answer to a request whose body is not read to its end. */
const CLOSE = { connection: 'close' };

/** A plain text answer; a line end is part of `body`. */
export function text(status: number, body: string, headers?: HttpAnswer['headers']): HttpAnswer {
  const answer = { status, contentType: 'text/plain; charset=utf-8', body };
  return headers === undefined ? answer : { ...answer, headers };
}

/** A JSON answer, indented: people read these at night. */
export function json(status: number, value: unknown): HttpAnswer {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value, null, 2)}\n` };
}

/** One HTTP port: finds the endpoint of a request and runs it. */
class HttpPort {
  readonly posts: PostCalls;
  readonly #endpoints: ReadonlyMap<string, HttpEndpoint>;
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.posts = new PostCalls(options.postLimits);
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
      if (endpoint.post !== undefined) {
        return await this.#post(endpoint, endpoint.post.maxBodyBytes, query, request, response);
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return text(405, 'only GET and HEAD\n', { allow: 'GET, HEAD' });
      }
      return await endpoint.answer({ query, headers: request.headers, body: NO_BODY });
    } catch (error) {
      this.#options.onError(error);
      return text(500, 'internal error\n');
    }
  }

  async #post(
    endpoint: HttpEndpoint,
    maxBodyBytes: number,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<HttpAnswer> {
    if (request.method !== 'POST') return text(405, 'Method Not Allowed\nonly POST\n', { allow: 'POST' });
    const body = await this.posts.read(request, response, maxBodyBytes);
    switch (body) {
      case 'draining':
        return text(503, 'Service Unavailable\nthis server ends\n', CLOSE);
      case 'busy':
        return text(503, 'Service Unavailable\ntoo many requests at once\n', CLOSE);
      case 'too large':
        return text(413, `Request Entity Too Large\nat most ${maxBodyBytes} bytes\n`, CLOSE);
      case 'gone':
        return text(400, 'Bad Request\n', CLOSE);
      default:
        return endpoint.answer({ query, headers: request.headers, body });
    }
  }
}

function send(request: IncomingMessage, response: ServerResponse, answer: HttpAnswer): void {
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    'content-type': answer.contentType,
    'content-length': body.length,
    ...(answer.status >= 400 ? { 'x-content-type-options': 'nosniff' } : {}),
    ...answer.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/**
 * Serves a handful of endpoints over HTTP/1.1. `port` 0 takes a free one. Rejects with Node's system error when the address
 * cannot be had.
 */
export function listenHttp(host: string, port: number, options: HttpOptions): Promise<HttpListener> {
  const httpPort = new HttpPort(options);
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void httpPort.answer(request, response).then((answer) => send(request, response, answer));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', options.onError);
      resolve({
        port: (server.address() as AddressInfo).port,
        drain: (graceMs) => httpPort.posts.drain(graceMs),
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}
