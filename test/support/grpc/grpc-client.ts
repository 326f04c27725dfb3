import {
  type ChannelCredentials,
  Client,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';

/** How a call ended: the message, or the status. */
export type UnaryReply =
  | { readonly code: 0; readonly message: Buffer }
  | { readonly code: number; readonly details: string };

export interface UnaryOptions {
  readonly timeoutMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A real gRPC client that sends and receives message bytes. Close it. */
export class RawClient {
  readonly #client: Client;

  /** `address` is `host:port` or `unix:path`; clear text unless told otherwise. */
  constructor(address: string, channel: ChannelCredentials = credentials.createInsecure()) {
    this.#client = new Client(address, channel, {
      // Every client has its own connection, and a call to a dead server fails at once.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      // Certificates of tests name this; a name sent in the handshake may not be an address.
      'grpc.ssl_target_name_override': 'localhost',
    });
  }

  /** Resolves with how the call ended; never rejects. */
  unary(path: string, message: Uint8Array, options: UnaryOptions = {}): Promise<UnaryReply> {
    return this.start(path, message, options).reply;
  }

  /** As {@link unary}, with a way to cancel. */
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
