import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type JsonValue,
  toJson,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { ProtoFile } from '../proto-files.js';
import { requestFromJson } from './json-request.js';
import { type JsonResponse, responseToJson } from './json-response.js';

/**
 * Converts between protobuf JSON (https://protobuf.dev/programming-guides/json/) and the wire format, for callers
 * without protobuf. Decisions always use the wire format. Works in steps of at most about a millisecond; the input must
 * not change meanwhile.
 */
export interface JsonCodec {
  /**
   * Encodes a RateLimitRequest in JSON. Field names are in camelCase or as in the proto file, enums are names or
   * numbers, and unknown fields are errors, as in Go's protojson. Throws {@link DecodeError} with a sentence for the
   * caller, also if the request exceeds a limit, in which case nothing further is read.
   */
  requestToWire(json: Uint8Array): Generator<void, Uint8Array>;
  /**
   * Converts an encoded RateLimitResponse to JSON, without fields that have their default value. Also returns whether
   * the overall code is OVER_LIMIT.
   */
  responseFromWire(bytes: Uint8Array): Generator<void, JsonResponse>;
}

const PACKAGE = 'envoy.service.ratelimit.v3';

/**
 * Creates a codec. `files` are rls.proto and its imports, imported files first. Throws if a file is missing. Requests
 * with more than `maxDescriptors` descriptors are rejected.
 */
export function createJsonCodec(files: readonly ProtoFile[], maxDescriptors: number): JsonCodec {
  const file = files.map(({ descriptor }) => fromBinary(FileDescriptorProtoSchema, descriptor));
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
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
