import { DecodeError, LARGE_MESSAGE_BYTES, NO_REQUEST } from './messages.js';
import { WireReader } from './wire-reader.js';

/* Tags of RateLimitRequest: field number * 8 + wire type. */
const DOMAIN = 0x0a;
const DESCRIPTORS = 0x12;
const HITS_ADDEND = 0x18;
const LAST = 3;

/**
 * The domain of an encoded RateLimitRequest, its descriptors left unread. Undefined when the outermost message is malformed or has more than
 * `maxFields` fields, and for a domain over {@link LARGE_MESSAGE_BYTES}.
 */
export function domainOf(bytes: Uint8Array, maxFields: number): string | undefined {
  const reader = new WireReader(NO_REQUEST, maxFields);
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
