import type { Descriptor, DescriptorEntry, RateLimitOverride, RateLimitRequest } from './messages.js';
import { TextTable } from './text-table.js';
import { WireReader } from './wire-reader.js';

/*
 * Tags (field number * 8 + wire type) of the known fields, by message, and the number of each message's last one. The numbers of
 * every message run from 1 without a gap.
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

const NO_REQUEST = 'message is not a well-formed envoy.service.ratelimit.v3.RateLimitRequest';

/**
 * Decodes envoy.service.ratelimit.v3.RateLimitRequest by protobuf's rules: fields in any order, unknown ones skipped, of a scalar the
 * last counts, a message field that comes again is merged with what came before.
 */
export class RequestDecoder {
  readonly #reader = new WireReader(NO_REQUEST);
  readonly #texts = new TextTable();

  /** Throws {@link DecodeError} on bytes that are no such message. Nothing it returns refers to `bytes`. */
  decode(bytes: Uint8Array): RateLimitRequest {
    const reader = this.#reader;
    reader.reset(bytes);
    const end = bytes.length;
    const descriptors: Descriptor[] = [];
    let domain = '';
    let hitsAddend = 0;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === REQUEST_DESCRIPTORS) descriptors.push(this.#descriptor(reader.lengthEnd(end)));
      else if (tag === REQUEST_DOMAIN) domain = this.#text(end);
      else if (tag === REQUEST_HITS_ADDEND) hitsAddend = reader.varint(end);
      else reader.skipUnknown(tag, REQUEST_LAST, end);
    }
    return { domain, descriptors, hitsAddend };
  }

  #descriptor(end: number): Descriptor {
    const reader = this.#reader;
    const entries: DescriptorEntry[] = [];
    let limit: RateLimitOverride | undefined;
    let hitsAddend: number | undefined;
    let isNegativeHits = false;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === DESCRIPTOR_ENTRIES) entries.push(this.#entry(reader.lengthEnd(end)));
      else if (tag === DESCRIPTOR_LIMIT) limit = this.#override(limit, reader.lengthEnd(end));
      else if (tag === DESCRIPTOR_HITS_ADDEND) {
        hitsAddend = this.#wrappedUint64(hitsAddend ?? 0, reader.lengthEnd(end));
      } else if (tag === DESCRIPTOR_IS_NEGATIVE_HITS) isNegativeHits = reader.bool(end);
      else reader.skipUnknown(tag, DESCRIPTOR_LAST, end);
    }
    return { entries, limit, hitsAddend, isNegativeHits };
  }

  #entry(end: number): DescriptorEntry {
    const reader = this.#reader;
    let key = '';
    let value = '';
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === ENTRY_KEY) key = this.#text(end);
      else if (tag === ENTRY_VALUE) value = this.#text(end);
      else reader.skipUnknown(tag, ENTRY_LAST, end);
    }
    return { key, value };
  }

  #override(before: RateLimitOverride | undefined, end: number): RateLimitOverride {
    const reader = this.#reader;
    let requestsPerUnit = before?.requestsPerUnit ?? 0;
    let unit = before?.unit ?? 0;
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === OVERRIDE_REQUESTS_PER_UNIT) requestsPerUnit = reader.varint(end);
      // An enum is an int32, whatever number it holds.
      else if (tag === OVERRIDE_UNIT) unit = reader.varint(end) | 0;
      else reader.skipUnknown(tag, OVERRIDE_LAST, end);
    }
    return { requestsPerUnit, unit };
  }

  /** google.protobuf.UInt64Value. */
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

  #text(end: number): string {
    const reader = this.#reader;
    const textEnd = reader.lengthEnd(end);
    const text = this.#texts.read(reader.bytes, reader.position, textEnd);
    reader.position = textEnd;
    return text;
  }
}
