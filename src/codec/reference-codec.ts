import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../assets.js';
import { RequestDecoder } from './decode-request.js';
import { domainOf, mayOverride } from './domain-of.js';
import {
  type Code,
  type Codec,
  type CodecOptions,
  DecodeError,
  type Descriptor,
  type DescriptorEntry,
  type DescriptorStatus,
  type HeaderValue,
  type LimitUnit,
  MAX_ENTRIES,
  maxFields,
  moreDescriptorsThan,
  NO_REQUEST,
  type RateLimitRequest,
  type RateLimitResponse,
  TOO_MANY_ENTRIES,
  tooManyFields,
} from './messages.js';
import { fromStruct, type ProtoStruct, toStruct } from './struct.js';
import { faultOf, type MessageShape, type WireBounds } from './wire-check.js';

const RLS_PROTO = 'envoy/service/ratelimit/v3/rls.proto';

/**
 * Reads `proto/` and returns every message, enum and service of rls.proto and what it imports. Enums are numbers, 64
 * bit integers are (rounded) numbers, absent scalars their defaults and absent messages null. Throws when the build is
 * incomplete.
 */
export function loadRateLimitDefinition(): PackageDefinition {
  return loadSync(RLS_PROTO, { includeDirs: [assetPath('proto')], longs: Number, defaults: true });
}

/** The messages as proto-loader hands them over with the options of {@link loadRateLimitDefinition}. */
interface LoadedDescriptor {
  readonly entries: readonly DescriptorEntry[];
  readonly limit: { readonly requestsPerUnit: number; readonly unit: number } | null;
  readonly hitsAddend: { readonly value: number } | null;
  readonly isNegativeHits: boolean;
}
interface LoadedRequest {
  readonly domain: string;
  readonly descriptors: readonly LoadedDescriptor[];
  readonly hitsAddend: number;
}
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

const entryShape: MessageShape = [undefined, 'bytes', 'bytes'];
const overrideShape: MessageShape = [undefined, 'varint', 'varint'];
const wrapperShape: MessageShape = [undefined, 'varint'];
const descriptorShape: MessageShape = [undefined, entryShape, overrideShape, wrapperShape, 'varint'];
/** RateLimitRequest by field number: domain, descriptors, hits_addend. */
export const requestShape: MessageShape = [undefined, 'bytes', descriptorShape, 'varint'];

/** What protobufjs, which counts nothing, may be given. */
function requestBounds(maxDescriptors: number): WireBounds {
  const fields = maxFields(maxDescriptors);
  return {
    fields: { most: fields, sentence: tooManyFields(fields) },
    messages: new Map([
      [descriptorShape, { most: maxDescriptors, sentence: moreDescriptorsThan(maxDescriptors) }],
      [entryShape, { most: MAX_ENTRIES, sentence: TOO_MANY_ENTRIES }],
    ]),
  };
}

const NO_RESPONSE = 'message is not a well-formed envoy.service.ratelimit.v3.RateLimitResponse';

/**
 * The codec over @grpc/proto-loader, which builds its encoders and decoders from `proto/` when it starts. Reads the
 * files, so make one per process. What the codec written by hand (wire-codec.ts) is compared with, and its stand-in in
 * production (RLS_CODEC).
 */
export function createReferenceCodec({ maxDescriptors = MAX_ENTRIES }: CodecOptions = {}): Codec {
  const definition = loadRateLimitDefinition();
  const request = definition['envoy.service.ratelimit.v3.RateLimitRequest'] as MessageTypeDefinition<
    object,
    object
  >;
  const response = definition['envoy.service.ratelimit.v3.RateLimitResponse'] as MessageTypeDefinition<
    object,
    object
  >;
  const bounds = requestBounds(maxDescriptors);
  const check = (bytes: Uint8Array): void => {
    const fault = faultOf(bytes, requestShape, bounds);
    if (fault !== undefined) throw new DecodeError(fault === 'malformed' ? NO_REQUEST : fault);
  };
  const large = new RequestDecoder({ maxDescriptors });
  return {
    decodeRequest(bytes) {
      check(bytes);
      return fromLoadedRequest(deserialize(request, bytes, NO_REQUEST) as LoadedRequest);
    },
    // protobufjs decodes a text of 4 MB that is no UTF-8 in 15 ms at a stretch, and knows no steps.
    decodeSteps: (bytes) => large.steps(bytes),
    domainOf: (bytes) => domainOf(bytes, bounds.fields.most),
    mayOverride,
    encodeResponse: (message) => response.serialize(toLoadedResponse(message)),
    encodeRequest: (message) => request.serialize(toLoadedRequest(message)),
    decodeResponse: (bytes) =>
      fromLoadedResponse(deserialize(response, bytes, NO_RESPONSE) as LoadedResponse),
  };
}

function deserialize(
  type: MessageTypeDefinition<object, object>,
  bytes: Uint8Array,
  sentence: string,
): object {
  // Only from a Buffer are strings decoded by Node itself, which puts U+FFFD for what is not UTF-8.
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return type.deserialize(buffer);
  } catch (error) {
    throw new DecodeError(sentence, { cause: error });
  }
}

function fromLoadedRequest(loaded: LoadedRequest): RateLimitRequest {
  return {
    domain: loaded.domain,
    descriptors: loaded.descriptors.map(fromLoadedDescriptor),
    hitsAddend: loaded.hitsAddend,
  };
}

function fromLoadedDescriptor(loaded: LoadedDescriptor): Descriptor {
  return {
    entries: loaded.entries,
    limit: loaded.limit ?? undefined,
    hitsAddend:
      loaded.hitsAddend === null ? undefined : Math.min(loaded.hitsAddend.value, Number.MAX_SAFE_INTEGER),
    isNegativeHits: loaded.isNegativeHits,
  };
}

/** Default values are left out, as every other protobuf implementation does: protobufjs would write them. */
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

function toLoadedResponse(message: RateLimitResponse): object {
  return {
    overallCode: message.overallCode || undefined,
    statuses: message.statuses.map(toLoadedStatus),
    responseHeadersToAdd: message.responseHeadersToAdd,
    requestHeadersToAdd: message.requestHeadersToAdd,
    rawBody: message.rawBody?.length ? message.rawBody : undefined,
    dynamicMetadata: message.dynamicMetadata && toStruct(message.dynamicMetadata),
  };
}

function toLoadedStatus(status: DescriptorStatus): object {
  return {
    code: status.code || undefined,
    currentLimit: status.currentLimit && {
      name: status.currentLimit.name || undefined,
      requestsPerUnit: status.currentLimit.requestsPerUnit || undefined,
      unit: status.currentLimit.unit || undefined,
    },
    limitRemaining: status.limitRemaining || undefined,
    durationUntilReset:
      status.durationUntilResetSeconds === undefined
        ? undefined
        : { seconds: status.durationUntilResetSeconds || undefined },
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
