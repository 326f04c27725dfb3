import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import { closeLater } from '../process/close-later.js';

/** Results of a call: messages, metadata and status. */
export interface Outcome {
  readonly code: number;
  readonly details: string;
  readonly messages: Buffer[];
  readonly initial: Metadata | undefined;
  readonly trailing: Metadata | undefined;
}

type Events = Pick<NodeJS.EventEmitter, 'on'>;

/** A real gRPC client for all four kinds of calls, with messages as bytes. Close it after use. */
export class StreamClient {
  readonly #client: Client;

  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
    closeLater(this, () => this.close());
  }

  unary(path: string, message: Buffer, metadata = new Metadata(), timeoutMs?: number): Promise<Outcome> {
    const messages: Buffer[] = [];
    const call = this.#client.makeUnaryRequest(
      path,
      same,
      same,
      message,
      metadata,
      options(timeoutMs),
      keep(messages),
    );
    return outcome(call, messages);
  }

  serverStream(
    path: string,
    message: Buffer,
    metadata = new Metadata(),
    timeoutMs?: number,
  ): Promise<Outcome> {
    const stream = this.#client.makeServerStreamRequest(
      path,
      same,
      same,
      message,
      metadata,
      options(timeoutMs),
    );
    return streamed(stream);
  }

  /** Same as {@link serverStream}, but returns the stream for the caller to read. */
  startServerStream(path: string, message: Buffer): ClientReadableStream<Buffer> {
    const stream = this.#client.makeServerStreamRequest(path, same, same, message);
    stream.on('error', () => {});
    return stream;
  }

  /** Makes a client-streaming call. `open`: do not end the request. */
  clientStream(path: string, requests: readonly Buffer[], { open = false } = {}): Promise<Outcome> {
    const messages: Buffer[] = [];
    const stream = this.#client.makeClientStreamRequest(path, same, same, keep(messages));
    for (const request of requests) stream.write(request);
    if (!open) stream.end();
    return outcome(stream, messages);
  }

  bidi(path: string): {
    readonly stream: ClientDuplexStream<Buffer, Buffer>;
    readonly outcome: Promise<Outcome>;
  } {
    const stream = this.#client.makeBidiStreamRequest(path, same, same);
    return { stream, outcome: streamed(stream) };
  }

  close(): void {
    this.#client.close();
  }
}

function options(timeoutMs: number | undefined): { deadline?: number } {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

function same(bytes: Buffer): Buffer {
  return bytes;
}

function keep(messages: Buffer[]): (error: ServiceError | null, message?: Buffer) => void {
  return (error, message) => {
    if (error === null && message !== undefined) messages.push(message);
  };
}

function streamed(stream: Events): Promise<Outcome> {
  const messages: Buffer[] = [];
  stream.on('data', (message: Buffer) => messages.push(message));
  stream.on('error', () => {});
  return outcome(stream, messages);
}

/** Collects the results of a call. The status arrives last, after every message. */
function outcome(call: Events, messages: Buffer[]): Promise<Outcome> {
  let initial: Metadata | undefined;
  call.on('metadata', (metadata: Metadata) => {
    initial = metadata;
  });
  return new Promise((resolve) => {
    call.on('status', ({ code, details, metadata }: StatusObject) => {
      // The callback of a unary call follows its status.
      setImmediate(() => resolve({ code, details, messages, initial, trailing: metadata }));
    });
  });
}
