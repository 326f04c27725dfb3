import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { protoFiles } from '../../../src/codec/proto-files.js';

/** Numbers in 64-bit fields that JSON.parse would round. */
const LONG_HITS = /("(?:hitsAddend|hits_addend)"\s*:\s*)(\d{16,})(?![\d.eE])/g;

const STRINGS = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const within = Object.values(value).reduce<number>((sum, member) => sum + membersOf(member), 0);
  return within + (Array.isArray(value) ? 0 : Object.keys(value).length);
}

/** Returns whether an object of a JSON text repeats a name. JSON.parse keeps only the last value. */
function hasNameTwice(text: string, parsed: unknown): boolean {
  let names = 0;
  for (const [, colon] of text.matchAll(STRINGS)) if (colon !== undefined) names++;
  return names > membersOf(parsed);
}

/**
 * Protobuf JSON of the two messages by @bufbuild/protobuf and JSON.parse, which have no bounds. Tests compare weir's
 * codec with it. Both libraries keep the last value of a repeated field; this function refuses such a field, as the
 * format requires.
 */
export interface ProtobufJson {
  /** Returns the bytes of a RateLimitRequest; undefined if the JSON is refused. */
  requestToWire(json: Uint8Array): Uint8Array | undefined;
  responseFromWire(bytes: Uint8Array): JsonValue;
}

export function protobufJson(): ProtobufJson {
  const file = protoFiles().map(({ descriptor }) => fromBinary(FileDescriptorProtoSchema, descriptor));
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
  const message = (name: string): DescMessage => {
    const found = registry.getMessage(`envoy.service.ratelimit.v3.${name}`);
    if (found === undefined) throw new Error(`no message ${name}`);
    return found;
  };
  const [request, response] = [message('RateLimitRequest'), message('RateLimitResponse')];
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  return {
    requestToWire(json) {
      try {
        const text = utf8.decode(json).replace(LONG_HITS, '$1"$2"');
        const parsed = JSON.parse(text) as JsonValue;
        if (hasNameTwice(text, parsed)) return undefined;
        return toBinary(request, fromJson(request, parsed, { registry }));
      } catch {
        return undefined;
      }
    },
    responseFromWire: (bytes) => toJson(response, fromBinary(response, bytes), { registry }),
  };
}
