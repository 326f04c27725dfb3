/**
 * envoy.service.ratelimit.v3.RateLimitRequest and RateLimitResponse as plain objects. Field names are the proto's in
 * camelCase; what weir neither reads nor writes is left out (quota).
 */
import { quantity } from '../quantity.js';

export interface DescriptorEntry {
  readonly key: string;
  readonly value: string;
}

/** RateLimitDescriptor.RateLimitOverride. `unit` is envoy.type.v3.RateLimitUnit, any number a caller may send. */
export interface RateLimitOverride {
  readonly requestsPerUnit: number;
  readonly unit: number;
}

export interface Descriptor {
  readonly entries: readonly DescriptorEntry[];
  readonly limit: RateLimitOverride | undefined;
  /** Absent: the request's hits addend counts. 0 is a peek. Values above 2^53-1 arrive as 2^53-1. */
  readonly hitsAddend: number | undefined;
  readonly isNegativeHits: boolean;
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** uint32; 0 means absent, which means 1. */
  readonly hitsAddend: number;
}

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
}

export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit: CurrentLimit | undefined;
  /** uint32. */
  readonly limitRemaining: number;
  /** Whole seconds; absent where there is no limit. */
  readonly durationUntilResetSeconds: number | undefined;
}

/** envoy.config.core.v3.HeaderValue. */
export interface HeaderValue {
  readonly key: string;
  readonly value: string;
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

/**
 * Messages of more bytes take long enough that others should have their turns meanwhile:
 * {@link ServiceCodec.decodeSteps}.
 */
export const LARGE_MESSAGE_BYTES = 16 * 1024;

/** Most entries of one request, in all its descriptors together; more do not decode. */
export const MAX_ENTRIES = 10_000;

/** What a codec takes. */
export interface CodecOptions {
  /** Requests of more descriptors do not decode. As many as {@link MAX_ENTRIES} when absent. */
  readonly maxDescriptors?: number;
}

/**
 * Most fields of one request, unknown ones, those in groups and those that come again included. An entry needs 3 at
 * most and a descriptor 7; what means nothing to us must end soon, too.
 */
export function maxFields(maxDescriptors: number): number {
  return 4 * MAX_ENTRIES + 10 * maxDescriptors;
}

/** The server's side; see wire-codec.ts. */
export interface ServiceCodec {
  /**
   * Throws {@link DecodeError} on bytes that are not a RateLimitRequest, or more of one than is allowed: then nothing
   * beyond the bound is read. What it returns does not refer to `bytes`, which may be a part of a buffer that is
   * written again.
   */
  decodeRequest(bytes: Uint8Array): RateLimitRequest;
  /**
   * {@link decodeRequest} in steps of at most about a millisecond, for messages over {@link LARGE_MESSAGE_BYTES}.
   * `bytes` must stay as they are until it ends.
   */
  decodeSteps(bytes: Uint8Array): Generator<void, RateLimitRequest>;
  /**
   * The domain of a request, without a look into its descriptors. Undefined when the outermost message is malformed or
   * has too many fields, and for a domain over {@link LARGE_MESSAGE_BYTES}.
   */
  domainOf(bytes: Uint8Array): string | undefined;
  /**
   * Whether a descriptor of a request may hold a limit override, without a look into its entries. True, too, for what
   * is malformed, and where the first thousand fields do not tell.
   */
  mayOverride(bytes: Uint8Array): boolean;
  /** The bytes returned stay as they are: no later call writes to them, so an answer may wait until it is sent. */
  encodeResponse(response: RateLimitResponse): Uint8Array;
}

/** The client's side (client-codec.ts), for `weir check`, `weir ratelimit-client` and tests. */
export interface ClientCodec {
  encodeRequest(request: RateLimitRequest): Uint8Array;
  /** Throws {@link DecodeError} on bytes that are not a RateLimitResponse. */
  decodeResponse(bytes: Uint8Array): RateLimitResponse;
}

/** The bytes do not parse. The message is safe to send to the caller. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** Why bytes that are no request are refused. */
export const INVALID_REQUEST = 'message is not a well-formed envoy.service.ratelimit.v3.RateLimitRequest';

/** Why a request is not read on once it holds more descriptors than `most`. */
export function moreDescriptorsThan(most: number): string {
  return (
    `rate limit descriptor list holds at least ${most + 1} descriptors, more than the ` +
    `${quantity(most, 'that is', 'that are')} allowed (MAX_DESCRIPTORS)`
  );
}

/** Why a request is not read on once its descriptors hold more entries than {@link MAX_ENTRIES}. */
export const TOO_MANY_ENTRIES =
  `rate limit descriptors hold at least ${MAX_ENTRIES + 1} entries, more than the ${MAX_ENTRIES} that ` +
  'are allowed in one request';

/** Why a request is not read on once it holds more fields than {@link maxFields}. */
export function tooManyFields(most: number): string {
  return `message holds at least ${most + 1} protobuf fields, more than the ${most} that are allowed in one request`;
}

/** Why a request with so many descriptors is refused. */
export function tooManyDescriptors(count: number, most: number): string {
  const allowed = quantity(most, 'that is', 'that are');
  return `rate limit descriptor list holds ${count} descriptors, more than the ${allowed} allowed`;
}

/** Why a request whose descriptors ask for more limits than `most` is refused. */
export function tooManyLimits(most: number): string {
  return `rate limit descriptor list asks for more limits than the ${quantity(most, 'that is', 'that are')} allowed`;
}
