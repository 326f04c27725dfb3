import { readVarint } from './varint.js';

/**
 * Fields of the messages within a RateLimitConfig (proto/ratelimit/config/ratelimit/v3/rls_conf.proto) that are
 * messages themselves: by the number of the field, the kind of its message. `struct` and what follows is
 * google.protobuf.Struct.
 */
const MESSAGES = {
  config: { 3: 'descriptor' },
  descriptor: { 3: 'policy', 4: 'descriptor', 8: 'struct' },
  policy: { 5: 'leaf', 1000: 'leaf' },
  leaf: {},
  struct: { 1: 'entry' },
  entry: { 2: 'value' },
  value: { 5: 'struct', 6: 'list' },
  list: { 1: 'value' },
} as const satisfies Readonly<Record<string, Readonly<Record<number, string>>>>;
type Kind = keyof typeof MESSAGES;

/** What a descriptor takes memory for beside its fields: it counts for so many more. */
const DESCRIPTOR_FIELDS = 3;

/** Wire types of protobuf. */
const [VARINT, FIXED64, LENGTH_DELIMITED, FIXED32] = [0, 1, 2, 5];

/**
 * How many fields a RateLimitConfig has, those of its parts included: what decoding it takes memory for, which is a
 * hundred times the bytes of a field that is empty. A descriptor counts for four. Counts no further than `most`, and
 * beyond that gives more. Bytes that are no such message are left to the decoder: they are counted as far as they can
 * be read.
 */
export function countFields(bytes: Uint8Array, most: number): number {
  const ends: number[] = [bytes.length];
  const kinds: Kind[] = ['config'];
  let count = 0;
  let at = 0;
  while (ends.length > 0) {
    if (at >= (ends.at(-1) as number)) {
      ends.pop();
      kinds.pop();
      continue;
    }
    if (++count > most) return count;
    const tag = readVarint(bytes, at);
    if (tag === undefined) return count;
    at = tag[1];
    const wire = tag[0] % 8;
    if (wire === VARINT) {
      const value = readVarint(bytes, at);
      if (value === undefined) return count;
      at = value[1];
    } else if (wire === FIXED64) at += 8;
    else if (wire === FIXED32) at += 4;
    else if (wire === LENGTH_DELIMITED) {
      const length = readVarint(bytes, at);
      if (length === undefined) return count;
      at = length[1];
      const messages: Readonly<Record<number, Kind>> = MESSAGES[kinds.at(-1) as Kind];
      const inner = messages[Math.floor(tag[0] / 8)];
      if (inner === undefined) at += length[0];
      else {
        if (inner === 'descriptor') count += DESCRIPTOR_FIELDS;
        ends.push(Math.min(at + length[0], ends.at(-1) as number));
        kinds.push(inner);
      }
    } else return count;
  }
  return count;
}
