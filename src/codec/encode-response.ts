import type { CurrentLimit, DescriptorStatus, HeaderValue, RateLimitResponse } from './messages.js';
import { MAX_BYTES_PER_UNIT, WireWriter } from './wire-writer.js';

/* Tags (field number * 8 + wire type), by message. */
const RESPONSE_OVERALL_CODE = 0x08;
const RESPONSE_STATUSES = 0x12;
const RESPONSE_HEADERS_TO_ADD = 0x1a;
const REQUEST_HEADERS_TO_ADD = 0x22;
const RESPONSE_RAW_BODY = 0x2a;
const RESPONSE_DYNAMIC_METADATA = 0x32;
const STATUS_CODE = 0x08;
const STATUS_CURRENT_LIMIT = 0x12;
const STATUS_LIMIT_REMAINING = 0x18;
const STATUS_DURATION_UNTIL_RESET = 0x22;
const LIMIT_REQUESTS_PER_UNIT = 0x08;
const LIMIT_UNIT_FIELD = 0x10;
const LIMIT_NAME = 0x1a;
const DURATION_SECONDS = 0x08;
const HEADER_KEY = 0x0a;
const HEADER_VALUE = 0x12;

/*
 * Maximum size of a field without its text or bytes: a tag of one byte, and the varint of a number or length of at most
 * ten.
 */
const MAX_FIELD_BYTES = 11;
const MAX_STATUS_BYTES = 9 * MAX_FIELD_BYTES;
const MAX_HEADER_BYTES = 3 * MAX_FIELD_BYTES;
/** Digits of the largest number that is a header value, 2^53-1. */
const MAX_DIGITS = 16;

/** Encodes envoy.service.ratelimit.v3.RateLimitResponse. Omits default values. */
export class ResponseEncoder {
  readonly #writer = new WireWriter();

  /** Returns an upper bound for the number of bytes that {@link writeBefore} writes. */
  maxLength(response: RateLimitResponse): number {
    const { statuses, responseHeadersToAdd, requestHeadersToAdd, rawBody, dynamicMetadata } = response;
    return (
      3 * MAX_FIELD_BYTES +
      maxStatusBytes(statuses) +
      maxHeaderBytes(responseHeadersToAdd) +
      maxHeaderBytes(requestHeadersToAdd) +
      (rawBody === undefined ? 0 : rawBody.length) +
      (dynamicMetadata === undefined ? 0 : maxStructBytes(dynamicMetadata))
    );
  }

  /** Writes a response so that it ends before `bytes[end]`. Returns the offset of its first byte. */
  writeBefore(response: RateLimitResponse, bytes: Uint8Array, end: number): number {
    const { statuses, responseHeadersToAdd, requestHeadersToAdd, rawBody } = response;
    const metadata = response.dynamicMetadata;
    const writer = this.#writer;
    writer.begin(bytes, end);
    // Fields are written in reverse order.
    if (metadata !== undefined) {
      writeStruct(writer, metadata);
      writer.lengthSince(end, RESPONSE_DYNAMIC_METADATA);
    }
    if (rawBody !== undefined && rawBody.length > 0) writer.bytesField(RESPONSE_RAW_BODY, rawBody);
    writeHeaders(writer, REQUEST_HEADERS_TO_ADD, requestHeadersToAdd);
    writeHeaders(writer, RESPONSE_HEADERS_TO_ADD, responseHeadersToAdd);
    for (let index = statuses.length - 1; index >= 0; index--) {
      writeStatus(writer, statuses[index] as DescriptorStatus);
    }
    writer.numberField(RESPONSE_OVERALL_CODE, response.overallCode);
    return writer.position;
  }
}

function maxStatusBytes(statuses: readonly DescriptorStatus[]): number {
  let units = 0;
  for (let index = 0; index < statuses.length; index++) {
    const limit = (statuses[index] as DescriptorStatus).currentLimit;
    if (limit !== undefined) units += limit.name.length;
  }
  return statuses.length * MAX_STATUS_BYTES + units * MAX_BYTES_PER_UNIT;
}

function maxHeaderBytes(headers: readonly HeaderValue[]): number {
  let units = 0;
  for (let index = 0; index < headers.length; index++) {
    const header = headers[index] as HeaderValue;
    const { value } = header;
    units += header.key.length + (typeof value === 'number' ? MAX_DIGITS : value.length);
  }
  return headers.length * MAX_HEADER_BYTES + units * MAX_BYTES_PER_UNIT;
}

function writeStatus(writer: WireWriter, status: DescriptorStatus): void {
  const statusEnd = writer.position;
  const seconds = status.durationUntilResetSeconds;
  if (seconds !== undefined) {
    const durationEnd = writer.position;
    writer.numberField(DURATION_SECONDS, seconds);
    writer.lengthSince(durationEnd, STATUS_DURATION_UNTIL_RESET);
  }
  writer.numberField(STATUS_LIMIT_REMAINING, status.limitRemaining);
  if (status.currentLimit !== undefined) writeLimit(writer, status.currentLimit);
  writer.numberField(STATUS_CODE, status.code);
  writer.lengthSince(statusEnd, RESPONSE_STATUSES);
}

function writeLimit(writer: WireWriter, limit: CurrentLimit): void {
  const { encoded } = limit;
  if (encoded) {
    writer.encoded(encoded);
    return;
  }
  const limitEnd = writer.position;
  writer.textField(LIMIT_NAME, limit.name);
  writer.numberField(LIMIT_UNIT_FIELD, limit.unit);
  writer.numberField(LIMIT_REQUESTS_PER_UNIT, limit.requestsPerUnit);
  writer.lengthSince(limitEnd, STATUS_CURRENT_LIMIT);
  if (encoded === null) limit.encoded = writer.copySince(limitEnd);
}

/** Writes a header without its tag. */
function writeHeader(writer: WireWriter, header: HeaderValue): void {
  const end = writer.position;
  const { value } = header;
  if (typeof value === 'number') writer.digitsField(HEADER_VALUE, value);
  else writer.textField(HEADER_VALUE, value);
  writer.cachedTextField(HEADER_KEY, header.key);
  writer.varint(end - writer.position);
  if (header.encoded === null) header.encoded = writer.copySince(end);
}

function writeHeaders(writer: WireWriter, tag: number, headers: readonly HeaderValue[]): void {
  for (let index = headers.length - 1; index >= 0; index--) {
    const header = headers[index] as HeaderValue;
    if (header.encoded) writer.encoded(header.encoded);
    else writeHeader(writer, header);
    writer.byte(tag);
  }
}

/* Tags of google.protobuf.Struct, Value and ListValue (google/protobuf/struct.proto): field number * 8 + wire type. */
const STRUCT_FIELDS = 0x0a;
const MAP_KEY = 0x0a;
const MAP_VALUE = 0x12;
const VALUE_NULL = 0x08;
const VALUE_NUMBER = 0x11;
const VALUE_STRING = 0x1a;
const VALUE_BOOL = 0x20;
const VALUE_STRUCT = 0x2a;
const VALUE_LIST = 0x32;
const LIST_VALUES = 0x0a;

/*
 * Encodes google.protobuf.Struct, Value and ListValue (google/protobuf/struct.proto), in reverse order, as the writer
 * does.
 */

/** Maximum size of a member or an item without its strings: its tags and lengths, and a double. */
const MAX_MEMBER_BYTES = 40;

/** Returns the maximum number of bytes that {@link writeStruct} writes for `member`. */
function maxStructBytes(member: unknown): number {
  if (typeof member === 'string') return MAX_MEMBER_BYTES + member.length * MAX_BYTES_PER_UNIT;
  if (typeof member !== 'object' || member === null) return MAX_MEMBER_BYTES;
  let bytes = MAX_MEMBER_BYTES;
  if (Array.isArray(member)) {
    for (const item of member) bytes += maxStructBytes(item);
    return bytes;
  }
  const members = member as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(members)) {
    bytes += key.length * MAX_BYTES_PER_UNIT + maxStructBytes(members[key]);
  }
  return bytes;
}

/** Writes a JSON object as a Struct, without a tag. Omits members that have no JSON value (undefined, functions). */
function writeStruct(writer: WireWriter, object: Readonly<Record<string, unknown>>): void {
  const keys = Object.keys(object);
  for (let index = keys.length - 1; index >= 0; index--) {
    const key = keys[index] as string;
    const value = object[key];
    if (!hasValue(value)) continue;
    const memberEnd = writer.position;
    writeValue(writer, value);
    writer.lengthSince(memberEnd, MAP_VALUE);
    writer.presentTextField(MAP_KEY, key);
    writer.lengthSince(memberEnd, STRUCT_FIELDS);
  }
}

function hasValue(member: unknown): boolean {
  const type = typeof member;
  return type === 'string' || type === 'number' || type === 'boolean' || type === 'object';
}

function writeValue(writer: WireWriter, member: unknown): void {
  const end = writer.position;
  switch (typeof member) {
    case 'number':
      writer.double(member);
      writer.byte(VALUE_NUMBER);
      return;
    case 'string':
      writer.presentTextField(VALUE_STRING, member);
      return;
    case 'boolean':
      writer.byte(member ? 1 : 0);
      writer.byte(VALUE_BOOL);
      return;
    case 'object':
      if (member === null) break;
      if (Array.isArray(member)) {
        writeItems(writer, member);
        writer.lengthSince(end, VALUE_LIST);
      } else {
        writeStruct(writer, member as Record<string, unknown>);
        writer.lengthSince(end, VALUE_STRUCT);
      }
      return;
  }
  writer.byte(0);
  writer.byte(VALUE_NULL);
}

function writeItems(writer: WireWriter, items: readonly unknown[]): void {
  for (let index = items.length - 1; index >= 0; index--) {
    const end = writer.position;
    writeValue(writer, items[index]);
    writer.lengthSince(end, LIST_VALUES);
  }
}
