import {
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { closeLater } from '../process/close-later.js';

/** Result of a call: the message, or the status. */
export type UnaryReply =
  | { readonly code: 0; readonly message: Buffer }
  | { readonly code: number; readonly details: string };

export interface UnaryOptions {
  readonly timeoutMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A real gRPC client that sends and receives messages as bytes. */
export class RawClient {
  readonly #client: Client;

  /** `address` is `host:port` or `unix:path`; the default is clear text. */
  constructor(address: string, channel: ChannelCredentials = credentials.createInsecure()) {
    this.#client = new Client(address, channel, {
      // Every client has its own connection, so that a call to a stopped server fails at once.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      // The test certificates contain this name. SNI does not allow an address.
      'grpc.ssl_target_name_override': 'localhost',
    });
    closeLater(this, () => this.close());
  }

  /** Resolves with the result of the call; never rejects. */
  unary(path: string, message: Uint8Array, options: UnaryOptions = {}): Promise<UnaryReply> {
    return this.start(path, message, options).reply;
  }

  /** Same as {@link unary}, with a function to cancel the call. */
  start(
    path: string,
    message: Uint8Array,
    options: UnaryOptions = {},
  ): { readonly reply: Promise<UnaryReply>; cancel(): void } {
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
    let cancel = (): void => {};
    const reply = new Promise<UnaryReply>((resolve) => {
      const call = this.#client.makeUnaryRequest(
        path,
        passThrough,
        passThrough,
        Buffer.from(message),
        metadata,
        options.timeoutMs === undefined ? {} : { deadline: Date.now() + options.timeoutMs },
        (error: ServiceError | null, answer?: Buffer) => {
          if (error === null && answer !== undefined) resolve({ code: status.OK, message: answer });
          else resolve({ code: error?.code ?? status.UNKNOWN, details: error?.details ?? 'no answer' });
        },
      );
      cancel = () => call.cancel();
    });
    return { reply, cancel };
  }

  close(): void {
    this.#client.close();
  }
}

function passThrough(message: Buffer): Buffer {
  return message;
}
