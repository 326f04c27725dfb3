import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { closeLater } from '../process/close-later.js';

/** End of a stream, as sent on the wire. */
export interface StreamEnd {
  /** `:status`; undefined if no headers arrived. */
  readonly httpStatus: number | undefined;
  /** Value from the trailers, or from the headers if the trailers have none. */
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string | undefined;
  readonly body: Buffer;
  /** Code of the RST_STREAM; 0 if the stream ended normally. */
  readonly resetCode: number;
}

/** Opens an HTTP/2 connection for requests that a gRPC client would never send. */
export async function openSession(
  port: number,
  options: SecureClientSessionOptions = {},
  host = '127.0.0.1',
  scheme: 'http' | 'https' = 'http',
): Promise<ClientHttp2Session> {
  const session = connect(`${scheme}://${host}:${port}`, options);
  closeLater(session, () => session.destroy());
  session.on('error', () => {});
  // The server's limits apply only after its settings are acknowledged.
  await new Promise<void>((resolve, reject) => {
    session.once('remoteSettings', () => resolve());
    session.once('close', () => reject(new Error('the server closed the connection')));
  });
  return session;
}

/** Starts a POST with gRPC's headers. The request remains open until the caller ends it. */
export function openStream(
  session: ClientHttp2Session,
  path: string,
  headers: OutgoingHttpHeaders = {},
): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  stream.on('error', () => {});
  return stream;
}

/** Reads a stream to its end. */
export function streamEnd(stream: ClientHttp2Stream): Promise<StreamEnd> {
  return new Promise((resolve) => {
    let response: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on('response', (headers) => {
      response = headers;
    });
    stream.on('trailers', (headers) => {
      trailers = headers;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('close', () => {
      const text = (name: string): string | undefined => (trailers[name] ?? response[name])?.toString();
      resolve({
        httpStatus: response[':status'],
        grpcStatus: text('grpc-status'),
        grpcMessage: text('grpc-message'),
        body: Buffer.concat(chunks),
        resetCode: stream.rstCode ?? 0,
      });
    });
  });
}

/** Makes one complete call over a raw session. */
export function post(
  session: ClientHttp2Session,
  path: string,
  body: Uint8Array,
  headers: OutgoingHttpHeaders = {},
): Promise<StreamEnd> {
  const stream = openStream(session, path, headers);
  const end = streamEnd(stream);
  stream.end(body);
  return end;
}

/** Returns a message with gRPC's five-byte prefix. */
export function prefixed(message: Uint8Array, compressed = false): Buffer {
  const prefix = Buffer.of(compressed ? 1 : 0, 0, 0, 0, 0);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Sends bytes over TCP. Resolves with the received bytes when the server closes the connection. */
export function exchangeBytes(port: number, bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket: Socket = connectTcp(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}
