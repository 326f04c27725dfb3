import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What an endpoint answers. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface HttpEndpoint {
  readonly path: string;
  /** One line for the list of endpoints. */
  readonly help: string;
  answer(query: URLSearchParams): HttpAnswer | Promise<HttpAnswer>;
}

export interface HttpListener {
  readonly port: number;
  /** Cuts what is open and stops listening. */
  close(): Promise<void>;
}

/** A plain text answer; a line end is part of `body`. */
export function text(status: number, body: string): HttpAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

/** A JSON answer, indented: people read these at night. */
export function json(status: number, value: unknown): HttpAnswer {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value, null, 2)}\n` };
}

async function answerRequest(
  endpoints: ReadonlyMap<string, HttpEndpoint>,
  request: IncomingMessage,
  onError: (error: unknown) => void,
): Promise<HttpAnswer> {
  const target = request.url ?? '/';
  const question = target.indexOf('?');
  const path = question === -1 ? target : target.slice(0, question);
  const endpoint = endpoints.get(path);
  if (endpoint === undefined) return text(404, `not found; here are ${[...endpoints.keys()].join(' ')}\n`);
  if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'only GET and HEAD\n');
  try {
    return await endpoint.answer(new URLSearchParams(question === -1 ? '' : target.slice(question + 1)));
  } catch (error) {
    onError(error);
    return text(500, 'internal error\n');
  }
}

function send(request: IncomingMessage, response: ServerResponse, answer: HttpAnswer): void {
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    'content-type': answer.contentType,
    'content-length': body.length,
    ...(answer.status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/**
 * Serves a handful of read-only endpoints over HTTP/1.1. `port` 0 takes a free one. Rejects with Node's system error when the address
 * cannot be had.
 */
export function listenHttp(
  host: string,
  port: number,
  endpoints: readonly HttpEndpoint[],
  onError: (error: unknown) => void,
): Promise<HttpListener> {
  const byPath = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]));
  const server = createServer((request, response) => {
    void answerRequest(byPath, request, onError).then((answer) => send(request, response, answer));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', onError);
      resolve({
        port: (server.address() as AddressInfo).port,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}
