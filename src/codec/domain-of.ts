import { DecodeError, INVALID_REQUEST, LARGE_MESSAGE_BYTES } from './messages.js';
import { WireReader } from './wire-reader.js';

/* Tags of RateLimitRequest: field number * 8 + wire type. */
const DOMAIN = 0x0a;
const DESCRIPTORS = 0x12;
const HITS_ADDEND = 0x18;
const LAST = 3;

/* Tags of RateLimitDescriptor. */
const ENTRIES = 0x0a;
const LIMIT = 0x12;
/** Maximum number of fields read to find an override, which takes about 20 microseconds. */
const MAX_FIELDS_READ = 1000;

/**
 * Returns the domain of an encoded RateLimitRequest without reading its descriptors. Returns undefined if the outermost
 * message is malformed or has more than `maxFields` fields, or if the domain exceeds {@link LARGE_MESSAGE_BYTES}.
 */
export function domainOf(bytes: Uint8Array, maxFields: number): string | undefined {
  const reader = new WireReader(INVALID_REQUEST, maxFields);
  reader.reset(bytes);
  const end = bytes.length;
  let start = 0;
  let length = 0;
  try {
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === DOMAIN || tag === DESCRIPTORS) {
        const fieldEnd = reader.lengthEnd(end);
        if (tag === DOMAIN) {
          start = reader.position;
          length = fieldEnd - start;
        }
        reader.position = fieldEnd;
      } else if (tag === HITS_ADDEND) reader.varint(end);
      else reader.skipUnknown(tag, LAST, end);
    }
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
  if (length > LARGE_MESSAGE_BYTES) return undefined;
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString();
}

/**
 * Returns whether a descriptor of an encoded RateLimitRequest may contain a limit override, without reading its
 * entries. Also returns true if the message is malformed or the first thousand fields do not decide.
 */
export function mayOverride(bytes: Uint8Array): boolean {
  const reader = new WireReader(INVALID_REQUEST, MAX_FIELDS_READ);
  reader.reset(bytes);
  const end = bytes.length;
  try {
    while (reader.position < end) {
      const tag = reader.tag(end);
      if (tag === DESCRIPTORS) {
        if (holdsLimit(reader, reader.lengthEnd(end))) return true;
      } else if (tag === DOMAIN) reader.position = reader.lengthEnd(end);
      else if (tag === HITS_ADDEND) reader.varint(end);
      else reader.skipUnknown(tag, LAST, end);
    }
  } catch (error) {
    if (error instanceof DecodeError) return true;
    throw error;
  }
  return false;
}

/** Reads a descriptor up to its limit override, or to its end. Returns whether it has an override. */
function holdsLimit(reader: WireReader, end: number): boolean {
  while (reader.position < end) {
    const tag = reader.tag(end);
    if (tag === LIMIT) return true;
    if (tag === ENTRIES) reader.position = reader.lengthEnd(end);
    else reader.skipUnknown(tag, 0, end);
  }
  return false;
}
