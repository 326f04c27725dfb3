import type { RateLimitRequest, ServiceCodec } from '../codec/messages.js';
import { freeBuffer } from '../runtime/free-buffer.js';

/** What a decoded entry takes in memory beside its texts, about; and a descriptor. */
const ENTRY_BYTES = 100;
const DESCRIPTOR_BYTES = 200;

/** What a decoded request takes in memory, about. */
export function bytesOf({ descriptors }: RateLimitRequest): number {
  let bytes = 0;
  for (let i = 0; i < descriptors.length; i++) {
    const entries = descriptors[i]?.entries ?? [];
    bytes += DESCRIPTOR_BYTES + entries.length * ENTRY_BYTES;
    for (let at = 0; at < entries.length; at++) {
      bytes += (entries[at]?.key.length ?? 0) + (entries[at]?.value.length ?? 0);
    }
  }
  return bytes;
}

/** Whether a descriptor of a request has a limit override. */
export function hasOverride({ descriptors }: RateLimitRequest): boolean {
  return descriptors.some(({ limit }) => limit !== undefined);
}

/** A large message that waits: what is known of it at any time. */
export class LargeMessage {
  request: RateLimitRequest | undefined;
  private message: Uint8Array | undefined;
  private readonly codec: ServiceCodec;

  /** Copies `message`, which its owner writes to again. */
  constructor(message: Uint8Array, codec: ServiceCodec) {
    this.message = new Uint8Array(message);
    this.codec = codec;
  }

  /** Decodes it; throws DecodeError. */
  *decode(): Generator<void, RateLimitRequest> {
    const { codec, message } = this;
    if (message === undefined) throw new Error('a message is decoded once');
    const request = yield* codec.decodeSteps(message);
    this.request = request;
    this.drop();
    return request;
  }

  /** Nobody asks for its bytes any more. */
  drop(): void {
    if (this.message !== undefined) freeBuffer(this.message);
    this.message = undefined;
  }

  /** Whether it may hold a limit override, as far as that is known without decoding it. */
  mayOverride(): boolean {
    if (this.request !== undefined) return hasOverride(this.request);
    return this.message === undefined || this.codec.mayOverride(this.message);
  }

  /** Undefined when it cannot be read. */
  domain(): string | undefined {
    if (this.request !== undefined) return this.request.domain;
    return this.message === undefined ? undefined : this.codec.domainOf(this.message);
  }
}
