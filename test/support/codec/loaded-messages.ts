import { toStruct } from '../../../src/codec/client-codec.js';
import type {
  Descriptor,
  DescriptorEntry,
  DescriptorStatus,
  RateLimitRequest,
  RateLimitResponse,
} from '../../../src/codec/messages.js';

/** A descriptor of a {@link LoadedRequest}. */
interface LoadedDescriptor {
  readonly entries: readonly DescriptorEntry[];
  readonly limit: { readonly requestsPerUnit: number; readonly unit: number } | null;
  readonly hitsAddend: { readonly value: number } | null;
  readonly isNegativeHits: boolean;
}

/** A RateLimitRequest as @grpc/proto-loader returns it with the options of `loadRateLimitDefinition`. */
export interface LoadedRequest {
  readonly domain: string;
  readonly descriptors: readonly LoadedDescriptor[];
  readonly hitsAddend: number;
}

/** Converts a request that @grpc/proto-loader has decoded. */
export function fromLoadedRequest(loaded: LoadedRequest): RateLimitRequest {
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

/** Converts a response for @grpc/proto-loader to encode. Omits default values, which protobufjs would write. */
export function toLoadedResponse(message: RateLimitResponse): object {
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
