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
import { DecodeError, tooManyDescriptors } from './messages.js';

/**
 * Between protobuf JSON (https://protobuf.dev/programming-guides/json/) and the wire, for callers who have no protobuf: what is decided
 * is always bytes.
 */
export interface JsonCodec {
  /**
   * A RateLimitRequest as JSON, encoded. Names of fields in camelCase or as in the proto file, enums by name or number. Throws
   * {@link DecodeError} with a sentence for the caller; unknown fields are errors, as in Go's protojson.
   */
  requestToWire(json: Uint8Array): Uint8Array;
  /** An encoded RateLimitResponse as JSON, fields of default value left out, and whether its overall code is OVER_LIMIT. */
  responseFromWire(bytes: Uint8Array): { readonly text: string; readonly overLimit: boolean };
}

const PACKAGE = 'envoy.service.ratelimit.v3';
const MAX_REASON_LENGTH = 300;

/**
 * Numbers that JSON.parse would round, where a field of 64 bits stands; protobuf JSON also takes them as strings. The pattern matches
 * nothing within a string, where quotes are escaped.
 */
const LONG_HITS = /("(?:hitsAddend|hits_addend)"\s*:\s*)(\d{16,})(?![\d.eE])/g;

function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason.length > MAX_REASON_LENGTH ? `${reason.slice(0, MAX_REASON_LENGTH)}…` : reason;
}

/** Puts every file behind those it imports, as a registry wants them. */
function sortedFiles(encoded: readonly Uint8Array[]): ReturnType<typeof parseFile>[] {
  const files = new Map(encoded.map(parseFile).map((file) => [file.name, file]));
  const sorted = new Set<ReturnType<typeof parseFile>>();
  const add = (name: string): void => {
    const file = files.get(name);
    if (file === undefined) throw new Error(`the proto files do not hold ${name}`);
    for (const imported of file.dependency) add(imported);
    sorted.add(file);
  };
  for (const name of files.keys()) add(name);
  return [...sorted];
}

function parseFile(bytes: Uint8Array) {
  return fromBinary(FileDescriptorProtoSchema, bytes);
}

/** Reading a descriptor costs a hundred times what it does on the wire, so a list that will be refused is not read. */
function checkLength(request: JsonValue, maxDescriptors: number): void {
  const list = (request as { readonly descriptors?: unknown } | null)?.descriptors;
  if (Array.isArray(list) && list.length > maxDescriptors) {
    throw new DecodeError(tooManyDescriptors(list.length, maxDescriptors));
  }
}

/**
 * `files` are encoded FileDescriptorProtos of rls.proto and all it imports, in any order. Throws when one is missing. Requests with more than
 * `maxDescriptors` do not decode.
 */
export function createJsonCodec(files: readonly Uint8Array[], maxDescriptors: number): JsonCodec {
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: sortedFiles(files) }));
  const message = (name: string): DescMessage => {
    const found = registry.getMessage(`${PACKAGE}.${name}`);
    if (found === undefined) throw new Error(`the proto files do not define ${PACKAGE}.${name}`);
    return found;
  };
  const request = message('RateLimitRequest');
  const response = message('RateLimitResponse');
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  return {
    requestToWire(json) {
      try {
        const text = utf8.decode(json).replace(LONG_HITS, '$1"$2"');
        const parsed = JSON.parse(text) as JsonValue;
        checkLength(parsed, maxDescriptors);
        return toBinary(request, fromJson(request, parsed, { registry }));
      } catch (error) {
        if (error instanceof DecodeError) throw error;
        throw new DecodeError(reasonOf(error), { cause: error });
      }
    },
    responseFromWire(bytes) {
      const json = toJson(response, fromBinary(response, bytes), { registry }) as {
        readonly overallCode?: string;
      };
      return { text: JSON.stringify(json), overLimit: json.overallCode === 'OVER_LIMIT' };
    },
  };
}
