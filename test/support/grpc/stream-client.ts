import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  type StatusObject,
} from '@grpc/grpc-js';
import { closeLater } from '../process/close-later.js';

/** Results of a call: messages and status. */
export interface Outcome {
  readonly code: number;
  readonly details: string;
  readonly messages: Buffer[];
}

type Events = Pick<NodeJS.EventEmitter, 'on'>;

/** A real gRPC client for unary and streaming calls, with messages as bytes. Close it after use. */
export class StreamClient {
  readonly #client: Client;

  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
    closeLater(this, () => this.close());
  }

  unary(path: string, message: Buffer): Promise<Outcome> {
    const messages: Buffer[] = [];
    const call = this.#client.makeUnaryRequest(path, same, same, message, (error, answer) => {
      if (error === null && answer !== undefined) messages.push(answer);
    });
    return outcome(call, messages);
  }

  /** `timeoutMs`: the caller gives up after this time. */
  serverStream(path: string, message: Buffer, timeoutMs = Number.POSITIVE_INFINITY): Promise<Outcome> {
    const options = { deadline: Date.now() + timeoutMs };
    return streamed(this.#client.makeServerStreamRequest(path, same, same, message, options));
  }

  /** Same as {@link serverStream}, but returns the stream for the caller to read. */
  startServerStream(path: string, message: Buffer): ClientReadableStream<Buffer> {
    const stream = this.#client.makeServerStreamRequest(path, same, same, message);
    stream.on('error', () => {});
    return stream;
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

function same(bytes: Buffer): Buffer {
  return bytes;
}

function streamed(stream: Events): Promise<Outcome> {
  const messages: Buffer[] = [];
  stream.on('data', (message: Buffer) => messages.push(message));
  stream.on('error', () => {});
  return outcome(stream, messages);
}

/** Collects the results of a call. The status arrives last, after every message. */
function outcome(call: Events, messages: Buffer[]): Promise<Outcome> {
  return new Promise((resolve) => {
    call.on('status', ({ code, details }: StatusObject) => {
      // The callback of a unary call follows its status.
      setImmediate(() => resolve({ code, details, messages }));
    });
  });
}
