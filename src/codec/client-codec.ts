import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';
import { assetPath } from '../runtime/assets.js';
import {
  type ClientCodec,
  type Code,
  DecodeError,
  type HeaderValue,
  type LimitUnit,
  type RateLimitRequest,
  type RateLimitResponse,
} from './messages.js';

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

/** google.protobuf.Value as proto-loader reads and writes it. At most one field is set. */
export interface ProtoValue {
  readonly nullValue?: number;
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: ProtoStruct;
  readonly listValue?: { readonly values?: readonly ProtoValue[] };
}

/** google.protobuf.Struct as proto-loader reads and writes it. */
export interface ProtoStruct {
  readonly fields?: Readonly<Record<string, ProtoValue>>;
}

/** Converts a JSON object to a Struct. Omits members that have no JSON value (undefined, functions). */
export function toStruct(object: Readonly<Record<string, unknown>>): ProtoStruct {
  const fields: [string, ProtoValue][] = [];
  for (const [key, member] of Object.entries(object)) {
    const value = toValue(member);
    if (value !== undefined) fields.push([key, value]);
  }
  return { fields: Object.fromEntries(fields) };
}

/** Converts a Struct to a JSON object. */
export function fromStruct(struct: ProtoStruct): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(struct.fields ?? {}).map(([key, value]) => [key, fromValue(value)]),
  );
}

function toValue(member: unknown): ProtoValue | undefined {
  if (member === null) return { nullValue: 0 };
  switch (typeof member) {
    case 'number':
      return { numberValue: member };
    case 'string':
      return { stringValue: member };
    case 'boolean':
      return { boolValue: member };
    case 'object':
      if (Array.isArray(member)) {
        return { listValue: { values: member.map((item: unknown) => toValue(item) ?? { nullValue: 0 }) } };
      }
      return { structValue: toStruct(member as Record<string, unknown>) };
    default:
      return undefined;
  }
}

function fromValue(value: ProtoValue): unknown {
  if (value.numberValue !== undefined) return value.numberValue;
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.boolValue !== undefined) return value.boolValue;
  if (value.structValue !== undefined) return fromStruct(value.structValue);
  if (value.listValue !== undefined) return (value.listValue.values ?? []).map(fromValue);
  return null;
}
