import { isAscii } from 'node:buffer';
import {
  type CodecOptions,
  DecodeError,
  type Descriptor,
  type DescriptorEntry,
  INVALID_REQUEST,
  MAX_ENTRIES,
  maxFields,
  moreDescriptorsThan,
  type RateLimitOverride,
  type RateLimitRequest,
  TOO_MANY_ENTRIES,
} from './messages.js';
import { StringCache } from './string-cache.js';
import { LONG_TEXT_BYTES, textSteps } from './text-steps.js';
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

/** Bytes that are read in one step. A byte takes about 5 ns at worst, for text that is not ASCII. */
const STEP_BYTES = 64 * 1024;
/** Cost of an entry in addition to its bytes, in bytes. */
const ENTRY_COST_BYTES = 16;
/** Ratio of the decoding cost of other text to the cost of ASCII text. */
const ASCII_COST_DIVISOR = 16;
/** If a request is decoded in steps, keys and values of entries larger than this are decoded after everything else. */
const DEFERRED_ENTRY_BYTES = 16 * 1024;

/** A large entry whose key and value are decoded in steps, after the rest of the request. */
interface DeferredEntry {
  readonly entry: { key: string; value: string };
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/**
 * Decodes envoy.service.ratelimit.v3.RateLimitRequest by the rules of protobuf: fields may come in any order, unknown
 * fields are skipped, the last value of a scalar counts, and repeated occurrences of a message field are merged. Counts
 * what it builds, and stops at the limits.
 */
export class RequestDecoder {
  readonly #maxDescriptors: number;
  readonly #reader: WireReader;
  readonly #texts: StringCache;
  #entriesLeft = 0;
  /** Cost of this message in addition to its bytes and entries, and the cost at which the current step ends. Bytes. */
  #stepCost = 0;
  #stepEnd = 0;
  /** Undefined if long strings are decoded immediately. */
  #deferred: DeferredEntry[] | undefined;

  constructor({ maxDescriptors = MAX_ENTRIES }: CodecOptions = {}, texts = new StringCache()) {
    this.#maxDescriptors = maxDescriptors;
    this.#reader = new WireReader(INVALID_REQUEST, maxFields(maxDescriptors));
    this.#texts = texts;
  }

  /**
   * Decodes a message. Throws {@link DecodeError} if the bytes are not such a message or exceed a limit. The result
   * does not refer to `bytes`.
   */
  decode(bytes: Uint8Array): RateLimitRequest {
    this.#begin(bytes);
    const reader = this.#reader;
    const end = bytes.length;
    const descriptors: Descriptor[] = [];
    let domainStart = 0;
    let domainEnd = 0;
    let hitsAddend = 0;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === REQUEST_DESCRIPTORS) {
        if (descriptors.length === this.#maxDescriptors) this.#tooManyDescriptors();
        descriptors.push(this.#descriptor(reader.lengthEnd(end)));
      } else if (tag === REQUEST_DOMAIN) {
        domainEnd = reader.lengthEnd(end);
        domainStart = reader.position;
        reader.position = domainEnd;
      } else if (tag === REQUEST_HITS_ADDEND) hitsAddend = reader.varint(end);
      else reader.skipUnknown(tag, REQUEST_LAST, end);
    }
    return { domain: this.#texts.read(bytes, domainStart, domainEnd), descriptors, hitsAddend };
  }

  /** Decodes a message in steps; see {@link decode}. Several generators may run concurrently. */
  steps(bytes: Uint8Array): Generator<void, RateLimitRequest> {
    return new RequestDecoder({ maxDescriptors: this.#maxDescriptors }, this.#texts).#steps(bytes);
  }

  *#steps(bytes: Uint8Array): Generator<void, RateLimitRequest> {
    this.#begin(bytes);
    const late: DeferredEntry[] = [];
    this.#deferred = late;
    const reader = this.#reader;
    const end = bytes.length;
    const descriptors: Descriptor[] = [];
    let domainStart = 0;
    let domainEnd = 0;
    let hitsAddend = 0;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === REQUEST_DESCRIPTORS) {
        if (descriptors.length === this.#maxDescriptors) this.#tooManyDescriptors();
        descriptors.push(yield* this.#descriptorSteps(reader.lengthEnd(end)));
      } else if (tag === REQUEST_DOMAIN) {
        domainEnd = reader.lengthEnd(end);
        domainStart = reader.position;
        reader.position = domainEnd;
      } else if (tag === REQUEST_HITS_ADDEND) hitsAddend = reader.varint(end);
      else reader.skipUnknown(tag, REQUEST_LAST, end);
      if (this.#stepIsFull()) yield;
    }
    const domain = yield* this.#textSteps(domainStart, domainEnd);
    for (const { entry, keyStart, keyEnd, valueStart, valueEnd } of late) {
      entry.key = yield* this.#textSteps(keyStart, keyEnd);
      entry.value = yield* this.#textSteps(valueStart, valueEnd);
    }
    return { domain, descriptors, hitsAddend };
  }

  #begin(bytes: Uint8Array): void {
    this.#reader.reset(bytes);
    this.#entriesLeft = MAX_ENTRIES;
    this.#stepCost = 0;
    this.#stepEnd = STEP_BYTES;
  }

  #descriptor(end: number): Descriptor {
    const reader = this.#reader;
    const entries: DescriptorEntry[] = [];
    let limit: RateLimitOverride | undefined;
    let hitsAddend: number | undefined;
    let isNegativeHits = false;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === DESCRIPTOR_ENTRIES) entries.push(this.#entry(end));
      else if (tag === DESCRIPTOR_LIMIT) limit = this.#override(limit, reader.lengthEnd(end));
      else if (tag === DESCRIPTOR_HITS_ADDEND) {
        hitsAddend = this.#wrappedUint64(hitsAddend ?? 0, reader.lengthEnd(end));
      } else if (tag === DESCRIPTOR_IS_NEGATIVE_HITS) isNegativeHits = reader.bool(end);
      else reader.skipUnknown(tag, DESCRIPTOR_LAST, end);
    }
    return { entries, limit, hitsAddend, isNegativeHits };
  }

  /** Same as {@link #descriptor}, with pauses. A generator would cost too much for every normal descriptor. */
  *#descriptorSteps(end: number): Generator<void, Descriptor> {
    const reader = this.#reader;
    const entries: DescriptorEntry[] = [];
    let limit: RateLimitOverride | undefined;
    let hitsAddend: number | undefined;
    let isNegativeHits = false;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === DESCRIPTOR_ENTRIES) entries.push(this.#entry(end));
      else if (tag === DESCRIPTOR_LIMIT) limit = this.#override(limit, reader.lengthEnd(end));
      else if (tag === DESCRIPTOR_HITS_ADDEND) {
        hitsAddend = this.#wrappedUint64(hitsAddend ?? 0, reader.lengthEnd(end));
      } else if (tag === DESCRIPTOR_IS_NEGATIVE_HITS) isNegativeHits = reader.bool(end);
      else reader.skipUnknown(tag, DESCRIPTOR_LAST, end);
      if (this.#stepIsFull()) yield;
    }
    return { entries, limit, hitsAddend, isNegativeHits };
  }

  /** Reads the length of an entry, which must end by `outerEnd`, and the entry. */
  #entry(outerEnd: number): DescriptorEntry {
    if (--this.#entriesLeft < 0) throw new DecodeError(TOO_MANY_ENTRIES);
    const reader = this.#reader;
    const end = reader.lengthEnd(outerEnd);
    const start = reader.position;
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
    if (end - start > DEFERRED_ENTRY_BYTES && this.#deferred !== undefined) {
      const entry = { key: '', value: '' };
      this.#deferred.push({ entry, keyStart, keyEnd, valueStart, valueEnd });
      this.#stepCost += start - end;
      return entry;
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

  *#textSteps(start: number, end: number): Generator<void, string> {
    const { bytes } = this.#reader;
    const length = end - start;
    if (length > LONG_TEXT_BYTES) return yield* textSteps(bytes, start, end);
    this.#stepCost += isAscii(bytes.subarray(start, end)) ? length / ASCII_COST_DIVISOR : length;
    if (this.#stepIsFull()) yield;
    return this.#texts.read(bytes, start, end);
  }

  /** Returns whether the current step is complete. If so, the next step begins. */
  #stepIsFull(): boolean {
    const entries = MAX_ENTRIES - this.#entriesLeft;
    const cost = this.#reader.position + this.#stepCost + entries * ENTRY_COST_BYTES;
    if (cost < this.#stepEnd) return false;
    this.#stepEnd = cost + STEP_BYTES;
    return true;
  }

  #tooManyDescriptors(): never {
    throw new DecodeError(moreDescriptorsThan(this.#maxDescriptors));
  }
}
