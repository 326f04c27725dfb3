import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../assets.js';
import {
  type ClientCodec,
  type Code,
  DecodeError,
  type HeaderValue,
  type LimitUnit,
  type RateLimitRequest,
  type RateLimitResponse,
} from './messages.js';
import { fromStruct, type ProtoStruct } from './struct.js';

const RLS_PROTO = 'envoy/service/ratelimit/v3/rls.proto';

/**
 * Loads `proto/` and returns the messages, enums and services of rls.proto and its imports. Enums are numbers, 64-bit
 * integers are (rounded) numbers, absent scalars have their defaults, and absent messages are null. Throws if the build
 * is incomplete.
 */
export function loadRateLimitDefinition(): PackageDefinition {
  return loadSync(RLS_PROTO, { includeDirs: [assetPath('proto')], longs: Number, defaults: true });
}

/** The response as proto-loader returns it with the options of {@link loadRateLimitDefinition}. */
interface LoadedStatus {
  readonly code: Code;
  readonly currentLimit: {
    readonly name: string;
    readonly requestsPerUnit: number;
    readonly unit: LimitUnit;
  } | null;
  readonly limitRemaining: number;
  readonly durationUntilReset: { readonly seconds: number } | null;
}
interface LoadedResponse {
  readonly overallCode: Code;
  readonly statuses: readonly LoadedStatus[];
  readonly responseHeadersToAdd: readonly HeaderValue[];
  readonly requestHeadersToAdd: readonly HeaderValue[];
  readonly rawBody: Uint8Array;
  readonly dynamicMetadata: ProtoStruct | null;
}

const NO_RESPONSE = 'message is not a well-formed envoy.service.ratelimit.v3.RateLimitResponse';

/**
 * Creates the client side of the service with @grpc/proto-loader, which builds encoders and decoders from `proto/`. It
 * reads the proto files, so create one per process.
 */
export function createClientCodec(definition = loadRateLimitDefinition()): ClientCodec {
  const request = messageType(definition, 'RateLimitRequest');
  const response = messageType(definition, 'RateLimitResponse');
  return {
    encodeRequest: (message) => request.serialize(toLoadedRequest(message)),
    decodeResponse: (bytes) =>
      fromLoadedResponse(deserialize(response, bytes, NO_RESPONSE) as LoadedResponse),
  };
}

/** Returns the message of rls.proto that is called `name`. */
export function messageType(
  definition: PackageDefinition,
  name: 'RateLimitRequest' | 'RateLimitResponse',
): MessageTypeDefinition<object, object> {
  return definition[`envoy.service.ratelimit.v3.${name}`] as MessageTypeDefinition<object, object>;
}

/** Decodes `bytes`. Throws a {@link DecodeError} with `sentence` if protobufjs cannot read them. */
export function deserialize(
  type: MessageTypeDefinition<object, object>,
  bytes: Uint8Array,
  sentence: string,
): object {
  // Node itself decodes strings only from a Buffer. It replaces invalid UTF-8 with U+FFFD.
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return type.deserialize(buffer);
  } catch (error) {
    throw new DecodeError(sentence, { cause: error });
  }
}

/** Omits default values, as all other protobuf implementations do. protobufjs would write them. */
function toLoadedRequest(message: RateLimitRequest): object {
  return {
    domain: message.domain || undefined,
    descriptors: message.descriptors.map((descriptor) => ({
      entries: descriptor.entries.map((entry) => ({
        key: entry.key || undefined,
        value: entry.value || undefined,
      })),
      limit: descriptor.limit && {
        requestsPerUnit: descriptor.limit.requestsPerUnit || undefined,
        unit: descriptor.limit.unit || undefined,
      },
      hitsAddend:
        descriptor.hitsAddend === undefined ? undefined : { value: descriptor.hitsAddend || undefined },
      isNegativeHits: descriptor.isNegativeHits || undefined,
    })),
    hitsAddend: message.hitsAddend || undefined,
  };
}

function fromLoadedResponse(loaded: LoadedResponse): RateLimitResponse {
  return {
    overallCode: loaded.overallCode,
    statuses: loaded.statuses.map((status) => ({
      code: status.code,
      currentLimit: status.currentLimit ?? undefined,
      limitRemaining: status.limitRemaining,
      durationUntilResetSeconds: status.durationUntilReset?.seconds,
    })),
    responseHeadersToAdd: loaded.responseHeadersToAdd.map(({ key, value }) => ({ key, value })),
    requestHeadersToAdd: loaded.requestHeadersToAdd.map(({ key, value }) => ({ key, value })),
    rawBody: loaded.rawBody.length > 0 ? loaded.rawBody : undefined,
    dynamicMetadata: loaded.dynamicMetadata === null ? undefined : fromStruct(loaded.dynamicMetadata),
  };
}
