import type { RateLimitRequest, ServiceCodec } from '../codec/messages.js';
import { freeBuffer } from '../runtime/free-buffer.js';

/** Approximate memory of a decoded entry and of a descriptor, without their strings, in bytes. */
const ENTRY_BYTES = 100;
const DESCRIPTOR_BYTES = 200;

/** Returns the approximate memory of a decoded request, in bytes. */
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

/** Returns whether any descriptor of a request has a limit override. */
export function hasOverride({ descriptors }: RateLimitRequest): boolean {
  return descriptors.some(({ limit }) => limit !== undefined);
}

/** A large message in the queue. Parts of the message can be read before it is decoded. */
export class LargeMessage {
  request: RateLimitRequest | undefined;
  private message: Uint8Array | undefined;
  private readonly codec: ServiceCodec;

  /** Copies `message`, because its owner reuses the buffer. */
  constructor(message: Uint8Array, codec: ServiceCodec) {
    this.message = new Uint8Array(message);
    this.codec = codec;
  }

  /** Decodes the message in slices. Throws DecodeError. */
  *decode(): Generator<void, RateLimitRequest> {
    const { codec, message } = this;
    if (message === undefined) throw new Error('a message is decoded only once');
    const request = yield* codec.decodeSteps(message);
    this.request = request;
    this.drop();
    return request;
  }

  /** Frees the encoded message. */
  drop(): void {
    if (this.message !== undefined) freeBuffer(this.message);
    this.message = undefined;
  }

  /** Returns whether the message may contain a limit override, as far as this is known without decoding it. */
  mayOverride(): boolean {
    if (this.request !== undefined) return hasOverride(this.request);
    return this.message === undefined || this.codec.mayOverride(this.message);
  }

  /** Returns the domain of the request; undefined if it cannot be read. */
  domain(): string | undefined {
    if (this.request !== undefined) return this.request.domain;
    return this.message === undefined ? undefined : this.codec.domainOf(this.message);
  }
}
