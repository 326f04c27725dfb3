import type { JsonValue } from '@bufbuild/protobuf';
import { WireReader } from '../wire-reader.js';
import { StructJson } from './struct-json.js';

/** A RateLimitResponse as JSON. */
export interface JsonResponse {
  readonly text: string;
  readonly overLimit: boolean;
}

/** Tag of RateLimitResponse.dynamic_metadata: field number * 8 + wire type. */
const DYNAMIC_METADATA = 0x32;
/** Bytes of a response that are converted to JSON at once. A byte takes about 50 ns. */
const PIECE_BYTES = 8 * 1024;

/**
 * Converts an encoded RateLimitResponse to JSON, in steps of at most about a millisecond. `toObject`, which knows the
 * message, gets a few fields at a time. {@link StructJson} reads the metadata, which is one field of any length.
 */
export function* responseToJson(
  bytes: Uint8Array,
  toObject: (bytes: Uint8Array) => Readonly<Record<string, JsonValue>>,
): Generator<void, JsonResponse> {
  if (bytes.length <= PIECE_BYTES) {
    const object = toObject(bytes);
    return { text: JSON.stringify(object), overLimit: object['overallCode'] === 'OVER_LIMIT' };
  }
  const members = new Map<string, string>();
  const lists = new Map<string, string[]>();
  const add = (object: Readonly<Record<string, JsonValue>>): void => {
    for (const [name, value] of Object.entries(object)) {
      if (!Array.isArray(value)) members.set(name, JSON.stringify(value));
      else {
        const list = lists.get(name) ?? [];
        list.push(JSON.stringify(value).slice(1, -1));
        lists.set(name, list);
      }
    }
  };
  const reader = new WireReader('a response is malformed', Number.POSITIVE_INFINITY);
  reader.reset(bytes);
  const end = bytes.length;
  let start = 0;
  while (reader.position < end) {
    const fieldStart = reader.position;
    const tag = reader.tag(end);
    if (tag === DYNAMIC_METADATA) {
      add(toObject(bytes.subarray(start, fieldStart)));
      yield;
      members.set('dynamicMetadata', yield* new StructJson(reader).text(reader.lengthEnd(end)));
      start = reader.position;
    } else reader.skipUnknown(tag, 0, end);
    if (reader.position - start < PIECE_BYTES) continue;
    add(toObject(bytes.subarray(start, reader.position)));
    start = reader.position;
    yield;
  }
  add(toObject(bytes.subarray(start)));
  for (const [name, list] of lists) members.set(name, `[${list.join(',')}]`);
  yield;
  const text = `{${Array.from(members, ([name, value]) => `"${name}":${value}`).join(',')}}`;
  return { text, overLimit: members.get('overallCode') === '"OVER_LIMIT"' };
}
