import { Agent, request } from 'node:http';
import { connect, constants } from 'node:http2';
import { closeLater } from '../process/close-later.js';

/** A request that the test may abort. */
export interface OpenRequest {
  /** Resolves with the status when its headers arrive, or with undefined if the request ends without a response. */
  readonly status: Promise<number | undefined>;
  /** Resolves when the request is over. */
  readonly over: Promise<void>;
  abort(): void;
}

/** A client of an HTTP server on 127.0.0.1. Close it after use. */
export interface Caller {
  get(path: string, headers: Readonly<Record<string, string>>): OpenRequest;
  close(): void;
}

/** Sends each request on its own connection, which it closes to abort the request. */
export function http1Caller(port: number): Caller {
  const agent = closeLater(new Agent(), (one) => one.destroy());
  return {
    get(path, headers) {
      const outgoing = request({ host: '127.0.0.1', port, path, headers, agent });
      const over = new Promise<void>((resolve) => outgoing.once('close', resolve));
      const status = new Promise<number | undefined>((resolve) => {
        outgoing.once('response', (answer) => {
          resolve(answer.statusCode);
          answer.on('error', () => {}).resume();
        });
        void over.then(() => resolve(undefined));
      });
      outgoing.on('error', () => {}).end();
      return { status, over, abort: () => outgoing.destroy() };
    },
    close: () => agent.destroy(),
  };
}

/** Sends all requests on one connection, and resets the stream of a request to abort it. */
export function http2Caller(port: number): Caller {
  const session = connect(`http://127.0.0.1:${port}`).on('error', () => {});
  closeLater(session, () => session.destroy());
  return {
    get(path, headers) {
      const stream = session.request({ ':path': path, ...headers });
      const over = new Promise<void>((resolve) => stream.once('close', resolve));
      const status = new Promise<number | undefined>((resolve) => {
        stream.once('response', (answer) => resolve(answer[':status']));
        void over.then(() => resolve(undefined));
      });
      stream.on('error', () => {}).resume();
      return { status, over, abort: () => stream.close(constants.NGHTTP2_CANCEL) };
    },
    close: () => session.destroy(),
  };
}

export const CALLERS = [
  ['HTTP/1.1', http1Caller],
  ['HTTP/2', http2Caller],
] as const;
