import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type JsonValue,
  toJson,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { requestFromJson } from './json-request.js';
import { type JsonResponse, responseToJson } from './json-response.js';

/**
 * Between protobuf JSON (https://protobuf.dev/programming-guides/json/) and the wire, for callers who have no protobuf:
 * what is decided is always bytes. Works in steps of at most about a millisecond; what it reads must stay as it is
 * meanwhile.
 */
export interface JsonCodec {
  /**
   * A RateLimitRequest as JSON, encoded. Names of fields in camelCase or as in the proto file, enums by name or number;
   * unknown fields are errors, as in Go's protojson. Throws {@link DecodeError} with a sentence for the caller, also
   * for more than a request may hold: then nothing beyond is read.
   */
  requestToWire(json: Uint8Array): Generator<void, Uint8Array>;
  /**
   * An encoded RateLimitResponse as JSON, fields of default value left out, and whether its overall code is OVER_LIMIT.
   */
  responseFromWire(bytes: Uint8Array): Generator<void, JsonResponse>;
}

const PACKAGE = 'envoy.service.ratelimit.v3';
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

/**
 * `files` are encoded FileDescriptorProtos of rls.proto and all it imports, in any order. Throws when one is missing.
 * Requests with more than `maxDescriptors` do not decode.
 */
export function createJsonCodec(files: readonly Uint8Array[], maxDescriptors: number): JsonCodec {
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: sortedFiles(files) }));
  const message = (name: string): DescMessage => {
    const found = registry.getMessage(`${PACKAGE}.${name}`);
    if (found === undefined) throw new Error(`the proto files do not define ${PACKAGE}.${name}`);
    return found;
  };
  const response = message('RateLimitResponse');
  const toObject = (bytes: Uint8Array) =>
    toJson(response, fromBinary(response, bytes), { registry }) as Readonly<Record<string, JsonValue>>;
  return {
    requestToWire: (json) => requestFromJson(json, maxDescriptors),
    responseFromWire: (bytes) => responseToJson(bytes, toObject),
  };
}
