/**
 * envoy.service.ratelimit.v3.RateLimitRequest and RateLimitResponse as plain objects. Field names are in camelCase.
 * Fields that weir neither reads nor writes are omitted (quota).
 */

export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** RateLimitDescriptor.RateLimitOverride. `unit` is envoy.type.v3.RateLimitUnit; callers may send any number. */
export interface RateLimitOverride {
  readonly requestsPerUnit: number;
  readonly unit: number;
}

export interface Descriptor {
  readonly entries: readonly DescriptorEntry[];
  readonly limit: RateLimitOverride | undefined;
  /** If absent, the hits addend of the request applies. 0 is a peek. Values above 2^53-1 are saturated to 2^53-1. */
  readonly hitsAddend: number | undefined;
  readonly isNegativeHits: boolean;
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** uint32. 0 means absent, which means 1. */
  readonly hitsAddend: number;
  /**
   * The first bound that the message exceeds; undefined if it exceeds none. Otherwise, {@link descriptors} are those
   * that were read up to the bound, and the last one may lack entries.
   */
  readonly exceeded?: ExceededBound | undefined;
}

/** Bounds of a request. What exceeds them is not read. */
export interface RequestBounds {
  /** Maximum size of the encoded message (MAX_REQUEST_BYTES). */
  readonly maxBytes: number;
  /** MAX_DESCRIPTORS. */
  readonly maxDescriptors: number;
  /** Maximum number of entries in all descriptors together (MAX_ENTRIES). */
  readonly maxEntries: number;
}

/** The bounds that {@link RequestBounds} checks, as they are counted. */
export type ExceededBound = 'request_bytes' | 'descriptors' | 'entries';

export const DEFAULT_BOUNDS: RequestBounds = { maxBytes: 65_536, maxDescriptors: 128, maxEntries: 1000 };

/** RateLimitResponse.Code. */
export const CODE = { UNKNOWN: 0, OK: 1, OVER_LIMIT: 2 } as const;
export type Code = (typeof CODE)[keyof typeof CODE];

/** RateLimitResponse.RateLimit.Unit. */
export const LIMIT_UNIT = {
  unknown: 0,
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
  week: 7,
} as const;
export type LimitUnit = (typeof LIMIT_UNIT)[keyof typeof LIMIT_UNIT];

/** RateLimitResponse.RateLimit. */
export interface CurrentLimit {
  readonly name: string;
  readonly requestsPerUnit: number;
  readonly unit: LimitUnit;
  /** For an object that recurs: its encoded field, or null before the encoder has set it. */
  encoded?: Uint8Array | null;
}

export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit: CurrentLimit | undefined;
  /** uint32. */
  readonly limitRemaining: number;
  /** Whole seconds. Absent if no limit applies. */
  readonly durationUntilResetSeconds: number | undefined;
}

/** envoy.config.core.v3.HeaderValue. */
export interface HeaderValue {
  readonly key: string;
  /** A number is an integer from 0 to 2^53-1, and stands for its decimal digits. */
  readonly value: string | number;
  /** For an object that recurs: the encoded header, or null before the encoder has set it. */
  encoded?: Uint8Array | null | undefined;
}

export interface RateLimitResponse {
  readonly overallCode: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly HeaderValue[];
  readonly requestHeadersToAdd: readonly HeaderValue[];
  readonly rawBody: Uint8Array | undefined;
  /** google.protobuf.Struct as a JSON object. */
  readonly dynamicMetadata: Readonly<Record<string, unknown>> | undefined;
}

/** The client side of the codec (client-codec.ts), for `weir check`, `weir ratelimit-client` and tests. */
export interface ClientCodec {
  encodeRequest(request: RateLimitRequest): Uint8Array;
  /** Decodes a response. Throws {@link DecodeError} if the bytes are not a RateLimitResponse. */
  decodeResponse(bytes: Uint8Array): RateLimitResponse;
}

/** The bytes cannot be decoded. The message may be sent to the caller. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** Error message for bytes that are not a valid request. */
export const INVALID_REQUEST = 'message is not a well-formed envoy.service.ratelimit.v3.RateLimitRequest';
