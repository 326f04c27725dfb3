import {
  DEFAULT_BOUNDS,
  DecodeError,
  type Descriptor,
  type DescriptorEntry,
  type ExceededBound,
  INVALID_REQUEST,
  type RateLimitOverride,
  type RateLimitRequest,
  type RequestBounds,
} from './messages.js';
import { WireReader } from './wire-reader.js';

/*
 * Tags (field number * 8 + wire type) of the known fields, by message, and the highest field number of each message.
 * Field numbers start at 1 and have no gaps.
 */
const REQUEST_DOMAIN = 0x0a;
const REQUEST_DESCRIPTORS = 0x12;
const REQUEST_HITS_ADDEND = 0x18;
const REQUEST_LAST = 3;
const DESCRIPTOR_ENTRIES = 0x0a;
const DESCRIPTOR_LIMIT = 0x12;
const DESCRIPTOR_HITS_ADDEND = 0x1a;
const DESCRIPTOR_IS_NEGATIVE_HITS = 0x20;
const DESCRIPTOR_LAST = 4;
const ENTRY_KEY = 0x0a;
const ENTRY_VALUE = 0x12;
const ENTRY_LAST = 2;
const OVERRIDE_REQUESTS_PER_UNIT = 0x08;
const OVERRIDE_UNIT = 0x10;
const OVERRIDE_LAST = 2;
const WRAPPER_VALUE = 0x08;
const WRAPPER_LAST = 1;

/**
 * Domains, entry keys and many values recur. Comparing the bytes of a longer string takes as long as creating it. The
 * cache occupies 170 KiB and at most 4,096 strings.
 */
const CACHED_TEXTS = 4096;
const MAX_CACHED_TEXT_BYTES = 32;
const TEXT_MISSES = 2;
/**
 * The messages of the busiest keys recur, and are decoded once. The cache is small, because a request that is not in
 * the processor's cache costs as much as decoding it, and because replaced requests are work for the garbage collector.
 * It occupies 16 KiB and the requests, each of up to 10 KiB if its message consists of empty descriptors.
 */
export const CACHED_REQUESTS = 64;
export const MAX_CACHED_REQUEST_BYTES = 255;
const REQUEST_MISSES = 4;
/**
 * A hit saves 0.3 µs and a miss costs 0.2 µs. If more than half of some requests were not cached, the next ones are not
 * looked up.
 */
const SAMPLED_REQUESTS = 256;
const UNCACHED_REQUESTS = 8192;

/** A {@link RateLimitRequest} that is being decoded. */
interface DecodedRequest {
  domain: string;
  readonly descriptors: Descriptor[];
  hitsAddend: number;
  exceeded: ExceededBound | undefined;
}

/**
 * Decodes envoy.service.ratelimit.v3.RateLimitRequest by the rules of protobuf: fields may come in any order, unknown
 * fields are skipped, the last value of a scalar counts, and repeated occurrences of a message field are merged. Reads
 * no further than {@link RequestBounds}, except for the domain.
 */
export class RequestDecoder {
  readonly #bounds: RequestBounds;
  readonly #reader = new WireReader(INVALID_REQUEST);
  readonly #texts = new BytesCache(CACHED_TEXTS, MAX_CACHED_TEXT_BYTES, TEXT_MISSES, textOf);
  readonly #requests = new BytesCache(
    CACHED_REQUESTS,
    MAX_CACHED_REQUEST_BYTES,
    REQUEST_MISSES,
    (bytes, start, end) => {
      this.#sampledMisses++;
      return this.#decode(bytes, start, end);
    },
  );
  #sampled = 0;
  #sampledMisses = 0;
  /** Number of requests that are not looked up. */
  #uncached = 0;
  #entriesLeft = 0;
  #domainStart = 0;
  #domainEnd = 0;

  constructor(bounds: RequestBounds = DEFAULT_BOUNDS) {
    this.#bounds = bounds;
  }

  /**
   * Decodes the request in `bytes[start, end)` up to the bounds, see {@link RateLimitRequest.exceeded}. Throws
   * {@link DecodeError} if the bytes are not a RateLimitRequest, or if a message above {@link RequestBounds.maxBytes}
   * does not have its domain below this bound. Of such a message, the first `maxBytes` + 1 bytes are enough. The result
   * does not refer to `bytes`, so their buffer may be reused. Calls with equal messages may share a result.
   */
  decode(bytes: Uint8Array, start = 0, end = bytes.length): RateLimitRequest {
    // Long messages are never cached, and say nothing about whether short ones recur.
    if (end - start > MAX_CACHED_REQUEST_BYTES) return this.#decode(bytes, start, end);
    if (this.#uncached > 0) {
      this.#uncached--;
      return this.#decode(bytes, start, end);
    }
    if (this.#sampled++ === SAMPLED_REQUESTS) {
      if (this.#sampledMisses > SAMPLED_REQUESTS / 2) this.#uncached = UNCACHED_REQUESTS;
      this.#sampled = 0;
      this.#sampledMisses = 0;
    }
    return this.#requests.read(bytes, start, end);
  }

  #decode(bytes: Uint8Array, start: number, messageEnd: number): RateLimitRequest {
    const { maxBytes, maxDescriptors, maxEntries } = this.#bounds;
    const isCut = messageEnd - start > maxBytes;
    const end = isCut ? start + maxBytes : messageEnd;
    this.#reader.reset(bytes, start, isCut ? end : undefined);
    this.#entriesLeft = maxEntries;
    this.#domainStart = start;
    this.#domainEnd = start;
    const request: DecodedRequest = { domain: '', descriptors: [], hitsAddend: 0, exceeded: undefined };
    try {
      this.#request(request, end, maxDescriptors);
    } catch (error) {
      // The bound may have cut a field in two.
      if (!isCut || !(error instanceof DecodeError)) throw error;
    }
    if (isCut) {
      request.exceeded = 'request_bytes';
      // A domain that reaches the bound may be the start of a longer one, and without one, the bytes may be anything.
      if (this.#domainEnd === end || this.#domainEnd === this.#domainStart) this.#reader.fail();
    }
    request.domain = this.#texts.read(bytes, this.#domainStart, this.#domainEnd);
    return request;
  }

  #request(request: DecodedRequest, end: number, maxDescriptors: number): void {
    const reader = this.#reader;
    const { descriptors } = request;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === REQUEST_DESCRIPTORS) {
        const descriptorEnd = reader.lengthEnd(end);
        if (request.exceeded === undefined) {
          if (descriptors.length === maxDescriptors) request.exceeded = 'descriptors';
          else this.#descriptor(descriptors, descriptorEnd);
          if (this.#entriesLeft < 0) request.exceeded = 'entries';
        }
        // The rest of a request above a bound is not read, except for its domain.
        if (request.exceeded !== undefined) reader.position = descriptorEnd;
      } else if (tag === REQUEST_DOMAIN) {
        this.#domainEnd = reader.lengthEnd(end);
        this.#domainStart = reader.position;
        reader.position = this.#domainEnd;
      } else if (tag === REQUEST_HITS_ADDEND) request.hitsAddend = reader.varint(end);
      else reader.skipUnknown(tag, REQUEST_LAST, end);
    }
  }

  /** Reads a descriptor, and adds it first, so that the entries before an error are kept. */
  #descriptor(descriptors: Descriptor[], end: number): void {
    const reader = this.#reader;
    const entries: DescriptorEntry[] = [];
    const descriptor: { -readonly [Field in keyof Descriptor]: Descriptor[Field] } = {
      entries,
      limit: undefined,
      hitsAddend: undefined,
      isNegativeHits: false,
    };
    descriptors.push(descriptor);
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === DESCRIPTOR_ENTRIES) {
        if (--this.#entriesLeft < 0) return;
        entries.push(this.#entry(reader.lengthEnd(end)));
      } else if (tag === DESCRIPTOR_LIMIT) {
        descriptor.limit = this.#override(descriptor.limit, reader.lengthEnd(end));
      } else if (tag === DESCRIPTOR_HITS_ADDEND) {
        descriptor.hitsAddend = this.#wrappedUint64(descriptor.hitsAddend ?? 0, reader.lengthEnd(end));
      } else if (tag === DESCRIPTOR_IS_NEGATIVE_HITS) descriptor.isNegativeHits = reader.bool(end);
      else reader.skipUnknown(tag, DESCRIPTOR_LAST, end);
    }
  }

  #entry(end: number): DescriptorEntry {
    const reader = this.#reader;
    let keyStart = 0;
    let keyEnd = 0;
    let valueStart = 0;
    let valueEnd = 0;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === ENTRY_KEY) {
        keyEnd = reader.lengthEnd(end);
        keyStart = reader.position;
        reader.position = keyEnd;
      } else if (tag === ENTRY_VALUE) {
        valueEnd = reader.lengthEnd(end);
        valueStart = reader.position;
        reader.position = valueEnd;
      } else reader.skipUnknown(tag, ENTRY_LAST, end);
    }
    const { bytes } = reader;
    return {
      key: this.#texts.read(bytes, keyStart, keyEnd),
      value: this.#texts.read(bytes, valueStart, valueEnd),
    };
  }

  #override(before: RateLimitOverride | undefined, end: number): RateLimitOverride {
    const reader = this.#reader;
    let requestsPerUnit = before?.requestsPerUnit ?? 0;
    let unit = before?.unit ?? 0;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === OVERRIDE_REQUESTS_PER_UNIT) requestsPerUnit = reader.varint(end);
      // An enum is an int32 and may contain any number.
      else if (tag === OVERRIDE_UNIT) unit = reader.varint(end) | 0;
      else reader.skipUnknown(tag, OVERRIDE_LAST, end);
    }
    return { requestsPerUnit, unit };
  }

  /** Reads a google.protobuf.UInt64Value. */
  #wrappedUint64(before: number, end: number): number {
    const reader = this.#reader;
    let value = before;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === WRAPPER_VALUE) value = reader.saturatedUint64(end);
      else reader.skipUnknown(tag, WRAPPER_LAST, end);
    }
    return value;
  }
}

/**
 * Returns the text in `bytes[start, end)`. Uses Node's UTF-8 decoder, which inserts U+FFFD as the WHATWG Encoding
 * Standard does, and keeps a byte order mark.
 */
function textOf(bytes: Uint8Array, start: number, end: number): string {
  if (start === end) return '';
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString('utf8', start, end);
}

/** The 32-bit prime of the FNV hash. */
const HASH_PRIME = 0x0100_0193;
/**
 * Caches values that are made from short sequences of bytes. Comparing bytes is several times cheaper than creating a
 * string or a message from them.
 *
 * The hash of the bytes selects two adjacent slots. A value is stored immediately if one of them is free. Otherwise, it
 * replaces another value if it is missed several times in a row, so that bytes that rarely recur evict few values.
 *
 * A hit requires that all bytes are equal. Bytes that are crafted to collide therefore only make the sender's own
 * requests slower.
 */
export class BytesCache<Value> {
  readonly #make: (bytes: Uint8Array, start: number, end: number) => Value;
  readonly #maxBytes: number;
  readonly #slots: number;
  readonly #lengths: Uint8Array;
  readonly #bytes: Uint8Array;
  readonly #missesToReplace: number;
  /** Hash of the last bytes that were missed, and how often in a row, by slot. */
  readonly #missed: Int32Array;
  readonly #misses: Uint8Array;
  readonly #values: (Value | undefined)[];
  /** The slot that was read last. */
  #last = 0;

  /**
   * @param slots maximum number of cached values, a power of two
   * @param maxBytes maximum length of the bytes of a cached value, less than 256
   * @param missesToReplace number of misses in a row after which a value replaces another
   * @param make makes the value of `bytes[start, end)`; always the same for equal bytes
   */
  constructor(
    slots: number,
    maxBytes: number,
    missesToReplace: number,
    make: (bytes: Uint8Array, start: number, end: number) => Value,
  ) {
    this.#make = make;
    this.#maxBytes = maxBytes;
    this.#slots = slots;
    this.#lengths = new Uint8Array(slots);
    this.#bytes = new Uint8Array(slots * maxBytes);
    this.#missesToReplace = missesToReplace;
    this.#missed = new Int32Array(slots);
    this.#misses = new Uint8Array(slots);
    this.#values = new Array<Value | undefined>(slots).fill(undefined);
  }

  /** Returns the value of `bytes[start, end)`. Throws what `make` throws. */
  read(bytes: Uint8Array, start: number, end: number): Value {
    const length = end - start;
    if (length === 0 || length > this.#maxBytes) return this.#make(bytes, start, end);
    // The value that was read last is often read again.
    const last = this.#last;
    if (this.#matches(last, bytes, start, length)) return this.#values[last] as Value;
    // Two bytes at a time. Each byte counts, because recurring messages may differ anywhere, as in the last digit of an
    // address before a longer path.
    let hash = length;
    let at = start;
    for (const before = end - 1; at < before; at += 2) {
      hash = Math.imul(hash ^ ((bytes[at] as number) | ((bytes[at + 1] as number) << 8)), HASH_PRIME);
    }
    if (at < end) hash = Math.imul(hash ^ (bytes[at] as number), HASH_PRIME);
    const slot = (hash ^ (hash >>> 16)) & (this.#slots - 1);
    this.#last = this.#matches(slot, bytes, start, length) ? slot : slot ^ 1;
    if (this.#last === slot || this.#matches(slot ^ 1, bytes, start, length)) {
      return this.#values[this.#last] as Value;
    }
    const value = this.#make(bytes, start, end);
    if (this.#lengths[slot] === 0) this.#store(slot, bytes, start, end, value);
    else if (this.#lengths[slot ^ 1] === 0) this.#store(slot ^ 1, bytes, start, end, value);
    else if (this.#isOftenMissed(slot, hash)) this.#store(slot, bytes, start, end, value);
    return value;
  }

  /** Counts a miss, and returns whether it was the last one before a value is replaced. */
  #isOftenMissed(slot: number, hash: number): boolean {
    const misses = this.#missed[slot] === hash ? (this.#misses[slot] as number) + 1 : 1;
    this.#missed[slot] = hash;
    this.#misses[slot] = misses % this.#missesToReplace;
    return misses >= this.#missesToReplace;
  }

  #matches(slot: number, bytes: Uint8Array, start: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const kept = this.#bytes;
    const from = slot * this.#maxBytes;
    // From the end, because recurring messages mostly differ in their last value.
    for (let i = length - 1; i >= 0; i--) if (kept[from + i] !== bytes[start + i]) return false;
    return true;
  }

  #store(slot: number, bytes: Uint8Array, start: number, end: number, value: Value): void {
    const kept = this.#bytes;
    let at = slot * this.#maxBytes;
    for (let from = start; from < end; from++) kept[at++] = bytes[from] as number;
    this.#lengths[slot] = end - start;
    this.#values[slot] = value;
  }
}
