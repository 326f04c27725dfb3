import type { HeaderField } from '../../../src/h2/hpack/header-field.js';
import type {
  BodyWriter,
  RequestHead,
  ServerConnection,
  ServerStream,
} from '../../../src/h2/request-handler.js';

/** A stream without a connection. It records the calls of the protocol above it. */
export class FakeServerStream implements ServerStream {
  readonly id = 1;
  readonly head: RequestHead;
  readonly connection: ServerConnection;
  state: unknown = undefined;
  queuedBytes = 0;
  /** Sent header lists, each as an object of its fields. */
  readonly headers: Record<string, string>[] = [];
  readonly data: Buffer[] = [];
  ended = false;
  resetCode: number | undefined;
  consumedBytes = 0;

  constructor(head: RequestHead, connection: ServerConnection = newFakeConnection()) {
    this.head = head;
    this.connection = connection;
  }

  /** Sent status fields; undefined if none were sent. */
  get grpcStatus(): string | undefined {
    return this.headers.at(-1)?.['grpc-status'];
  }

  get grpcMessage(): string | undefined {
    return this.headers.at(-1)?.['grpc-message'];
  }

  get body(): Buffer {
    return Buffer.concat(this.data);
  }

  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void {
    this.#expectOpen();
    this.headers.push(Object.fromEntries(fields.map(({ name, value }) => [name, value])));
    this.ended = endStream;
  }

  sendData(bytes: Uint8Array, endStream: boolean): void {
    this.#expectOpen();
    this.data.push(Buffer.from(bytes));
    this.ended = endStream;
  }

  sendTrailers(fields: readonly HeaderField[]): void {
    this.sendHeaders(fields, true);
  }

  sendResponse(headers: readonly HeaderField[], body: BodyWriter, trailers: readonly HeaderField[]): void {
    this.sendHeaders(headers, false);
    const bytes = Buffer.alloc(body.maxLength);
    this.sendData(bytes.subarray(body.writeBefore(bytes, bytes.length)), false);
    this.sendTrailers(trailers);
  }

  reset(errorCode: number): void {
    this.resetCode = errorCode;
    this.ended = true;
  }

  consumed(bytes: number): void {
    this.consumedBytes += bytes;
  }

  #expectOpen(): void {
    if (this.ended) throw new Error('something was sent after the end of the stream');
  }
}

/** Returns a connection whose chunks arrive at the time of `nowMs`. */
export function newFakeConnection(nowMs: () => number = () => 0): ServerConnection {
  return {
    peer: '192.0.2.7:4711',
    openStreams: 1,
    unconsumedBytes: 0,
    get lastReceivedMs() {
      return nowMs();
    },
    addHeldBytes: () => {},
  };
}

/** Returns the head of a gRPC request. `fields` are alternating names and values. */
export function grpcRequestHead(path: string, ...fields: string[]): RequestHead {
  return {
    method: 'POST',
    scheme: 'http',
    path,
    authority: 'test',
    fields: ['content-type', 'application/grpc', 'te', 'trailers', ...fields],
  };
}
