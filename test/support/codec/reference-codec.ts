import {
  createClientCodec,
  deserialize,
  loadRateLimitDefinition,
  messageType,
} from '../../../src/codec/client-codec.js';
import {
  type ClientCodec,
  type CodecOptions,
  DecodeError,
  type Descriptor,
  type DescriptorEntry,
  type DescriptorStatus,
  MAX_ENTRIES,
  maxFields,
  moreDescriptorsThan,
  NO_REQUEST,
  type RateLimitRequest,
  type RateLimitResponse,
  type ServiceCodec,
  TOO_MANY_ENTRIES,
  tooManyFields,
} from '../../../src/codec/messages.js';
import { toStruct } from '../../../src/codec/struct.js';
import { faultOf, type MessageShape, type WireBounds } from './wire-check.js';

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

/** What decodes requests in one go. */
export type RequestReader = Pick<ServiceCodec, 'decodeRequest'>;
/** Both sides, without what reads a request in steps or in part. */
export type Codec = RequestReader & Pick<ServiceCodec, 'encodeResponse'> & ClientCodec;

/**
 * The codec over @grpc/proto-loader, which builds its encoders and decoders from `proto/`. It reads the files, so
 * create one per process. Property tests compare the codec written by hand (wire-codec.ts) with it.
 */
export function createReferenceCodec({ maxDescriptors = MAX_ENTRIES }: CodecOptions = {}): Codec {
  const definition = loadRateLimitDefinition();
  const request = messageType(definition, 'RateLimitRequest');
  const response = messageType(definition, 'RateLimitResponse');
  const bounds = requestBounds(maxDescriptors);
  const check = (bytes: Uint8Array): void => {
    const fault = faultOf(bytes, requestShape, bounds);
    if (fault !== undefined) throw new DecodeError(fault === 'malformed' ? NO_REQUEST : fault);
  };
  return {
    decodeRequest(bytes) {
      check(bytes);
      return fromLoadedRequest(deserialize(request, bytes, NO_REQUEST) as LoadedRequest);
    },
    encodeResponse: (message) => response.serialize(toLoadedResponse(message)),
    ...createClientCodec(definition),
  };
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
