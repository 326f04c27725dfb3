import { createClientCodec } from '../../../src/codec/client-codec.js';
import type { Descriptor, RateLimitResponse } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { STATUS } from '../../../src/grpc/grpc-server.js';
import { RawClient } from './grpc-client.js';

/** Result of a call, with its start and end in milliseconds of `performance.now()`. */
export interface RlsReply {
  readonly code: number;
  /** Absent unless `code` is OK. */
  readonly response: RateLimitResponse | undefined;
  readonly details: string;
  readonly sentAt: number;
  readonly answeredAt: number;
}

const codec = createClientCodec();

/** Options of a call. */
export interface RlsCallOptions {
  readonly timeoutMs?: number;
  readonly hitsAddend?: number;
  /** Value of the header `x-request-id`. */
  readonly requestId?: string;
  /** Further headers. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A client of a running weir, with its own connection. */
export class RlsClient {
  readonly #client: RawClient;

  constructor(port: number) {
    this.#client = new RawClient(`127.0.0.1:${port}`);
  }

  /** Sends one request; never rejects. Without `timeoutMs` it waits without limit. */
  async ask(
    domain: string,
    descriptors: readonly Descriptor[],
    { timeoutMs, hitsAddend = 0, requestId, metadata }: RlsCallOptions = {},
  ): Promise<RlsReply> {
    const message = codec.encodeRequest({ domain, descriptors, hitsAddend });
    return this.send(message, timeoutMs, requestId, metadata);
  }

  /** Sends a message as bytes. */
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
