import { createClientCodec } from '../../../src/codec/client-codec.js';
import type { Descriptor, RateLimitResponse } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { STATUS } from '../../../src/grpc/grpc-server.js';
import { RawClient } from './grpc-client.js';

/** How a call ended, and when it was on its way: milliseconds of `performance.now()`. */
export interface RlsReply {
  readonly code: number;
  /** Absent unless `code` is OK. */
  readonly response: RateLimitResponse | undefined;
  readonly details: string;
  readonly sentAt: number;
  readonly answeredAt: number;
}

const codec = createClientCodec();

/** What a call may have beside its message. */
export interface RlsCallOptions {
  readonly timeoutMs?: number;
  readonly hitsAddend?: number;
  /** Sent as `x-request-id`. */
  readonly requestId?: string;
  /** Further headers. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Asks a running weir over a connection of its own. Close it. */
export class RlsClient {
  readonly #client: RawClient;

  constructor(port: number) {
    this.#client = new RawClient(`127.0.0.1:${port}`);
  }

  /** One call; never rejects. Without `timeoutMs` it waits for ever. */
  async ask(
    domain: string,
    descriptors: readonly Descriptor[],
    { timeoutMs, hitsAddend = 0, requestId, metadata }: RlsCallOptions = {},
  ): Promise<RlsReply> {
    const message = codec.encodeRequest({ domain, descriptors, hitsAddend });
    return this.send(message, timeoutMs, requestId, metadata);
  }

  /** Sends bytes as they are. */
  async send(
    message: Uint8Array,
    timeoutMs?: number,
    requestId?: string,
    metadata?: Readonly<Record<string, string>>,
  ): Promise<RlsReply> {
    const sentAt = performance.now();
    const reply = await this.#client.unary(SHOULD_RATE_LIMIT_PATH, message, {
      ...(timeoutMs !== undefined && { timeoutMs }),
      metadata: { ...metadata, ...(requestId !== undefined && { 'x-request-id': requestId }) },
    });
    const answeredAt = performance.now();
    if ('message' in reply) {
      return {
        code: STATUS.OK,
        response: codec.decodeResponse(reply.message),
        details: '',
        sentAt,
        answeredAt,
      };
    }
    return { code: reply.code, response: undefined, details: reply.details, sentAt, answeredAt };
  }

  close(): void {
    this.#client.close();
  }
}
