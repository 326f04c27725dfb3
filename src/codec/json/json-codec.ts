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

/**
 * `files` are rls.proto and all it imports, imported ones first. Throws when one is missing. Requests with more than
 * `maxDescriptors` do not decode.
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
