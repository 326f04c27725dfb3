import {
  Metadata,
  type MethodDefinition,
  type ServerDuplexStream,
  type ServerWritableStream,
} from '@grpc/grpc-js';
import type { Fields, GenericCall, GenericHandler, GenericMethod, OpenStreams } from './generic-method.js';
import { GrpcError, STATUS, toGrpcError } from './grpc-error.js';

/** Maximum number of responses that wait for a caller that does not read. One more ends the call. */
const MAX_UNREAD_MESSAGES = 1000;
const MICROS_PER_MS = 1000;

/** A call of @grpc/grpc-js, with one request message or a stream of them. */
export type ByteStream = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

export function byteMethod(
  path: string,
  streams: { readonly requestStream: boolean; readonly responseStream: boolean },
): MethodDefinition<Buffer, Buffer> {
  const same = (bytes: Buffer): Buffer => bytes;
  const sides = { requestSerialize: same, requestDeserialize: same, responseSerialize: same };
  return { path, ...streams, ...sides, responseDeserialize: same };
}

/** Converts an error to a status of @grpc/grpc-js, which throws on lone surrogates. */
export function statusOf({ code, message }: GrpcError): { readonly code: number; readonly details: string } {
  return { code, details: message.toWellFormed() };
}

/** A call of a generic method on the plain stack. */
export class GrpcJsCall implements GenericCall {
  readonly #stream: ByteStream;
  readonly #method: GenericMethod;
  readonly #openStreams: OpenStreams;
  readonly #onError: (error: unknown) => void;

  constructor(
    stream: ByteStream,
    method: GenericMethod,
    openStreams: OpenStreams,
    onError: (error: unknown) => void,
  ) {
    this.#stream = stream;
    this.#method = method;
    this.#openStreams = openStreams;
    this.#onError = onError;
  }

  start(): void {
    if (this.#method.responseStream) this.#openStreams.add(this);
    if (!this.#hasEnded()) this.#notify(() => this.#follow(this.#method.begin(this)));
  }

  get fields(): Fields {
    const headers = Object.entries(this.#stream.metadata.toHttp2Headers());
    return headers.flatMap(([name, values]) =>
      [values ?? []].flat().flatMap((value) => [name, String(value)]),
    );
  }

  get timeoutMicros(): number {
    return (Number(this.#stream.getDeadline()) - Date.now()) * MICROS_PER_MS;
  }

  sendHeaders(fields: Fields): void {
    this.#stream.sendMetadata(toMetadata(fields));
  }

  send(message: Uint8Array): boolean {
    const stream = this.#stream;
    if (this.#hasEnded()) return false;
    if (stream.writableLength >= MAX_UNREAD_MESSAGES) {
      this.end(new GrpcError(STATUS.RESOURCE_EXHAUSTED, 'the caller does not read the responses'));
      return false;
    }
    const read = stream.write(Buffer.from(message));
    if (!read && 'read' in stream) stream.pause();
    return read;
  }

  end(error?: GrpcError, trailers: Fields = []): void {
    if (this.#hasEnded()) return;
    const metadata = toMetadata(trailers);
    if (error === undefined) this.#stream.end(metadata);
    else this.#stream.emit('error', { ...statusOf(error), metadata });
  }

  #hasEnded(): boolean {
    return this.#stream.writableEnded || this.#stream.cancelled;
  }

  #follow(handler: GenericHandler): void {
    const stream = this.#stream;
    const on = (name: string, event: (message: Buffer) => void): void => {
      stream.on(name, (message: Buffer) => this.#notify(() => event(message)));
    };
    on('drain', () => {
      if ('read' in stream) stream.resume();
      handler.onDrained?.();
    });
    // @grpc/grpc-js emits this event whenever a call has ended, even without an error.
    on('cancelled', () => {
      this.#openStreams.delete(this);
      handler.onClosed?.();
    });
    const onRequestEnd = (): void => {
      if (!this.#hasEnded()) handler.onRequestEnd?.();
    };
    if ('request' in stream) {
      handler.onMessage(stream.request);
      onRequestEnd();
    } else {
      on('data', (message) => {
        if (!this.#hasEnded()) handler.onMessage(message);
      });
      on('end', onRequestEnd);
    }
  }

  /** Errors that a handler throws must not reach the events of a connection. */
  #notify(event: () => void): void {
    try {
      event();
    } catch (error) {
      this.end(toGrpcError(error, this.#onError));
    }
  }
}

function toMetadata(fields: Fields): Metadata {
  const metadata = new Metadata();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    metadata.add(name, name.endsWith('-bin') ? Buffer.from(value, 'base64') : value);
  }
  return metadata;
}
