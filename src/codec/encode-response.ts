import { maxStructBytes, writeStruct } from './encode-struct.js';
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

/** Encodes envoy.service.ratelimit.v3.RateLimitResponse. Omits default values. */
export class ResponseEncoder {
  readonly #writer = new WireWriter();

  /**
   * Returns the encoded response. The caller may keep the bytes: they share memory with other responses but are never
   * overwritten.
   */
  encode(response: RateLimitResponse): Uint8Array {
    const { statuses, responseHeadersToAdd, requestHeadersToAdd, rawBody } = response;
    const metadata = response.dynamicMetadata;
    const bodyBytes = rawBody === undefined ? 0 : rawBody.length;
    const writer = this.#writer;
    writer.begin(
      3 * MAX_FIELD_BYTES +
        maxStatusBytes(statuses) +
        maxHeaderBytes(responseHeadersToAdd) +
        maxHeaderBytes(requestHeadersToAdd) +
        bodyBytes +
        (metadata === undefined ? 0 : maxStructBytes(metadata)),
    );
    // Fields are written in reverse order.
    if (metadata !== undefined) {
      const metadataEnd = writer.mark;
      writeStruct(writer, metadata);
      writer.lengthSince(metadataEnd, RESPONSE_DYNAMIC_METADATA);
    }
    if (rawBody !== undefined && bodyBytes > 0) writer.bytesField(RESPONSE_RAW_BODY, rawBody);
    writeHeaders(writer, REQUEST_HEADERS_TO_ADD, requestHeadersToAdd);
    writeHeaders(writer, RESPONSE_HEADERS_TO_ADD, responseHeadersToAdd);
    for (let index = statuses.length - 1; index >= 0; index--) {
      writeStatus(writer, statuses[index] as DescriptorStatus);
    }
    writer.numberField(RESPONSE_OVERALL_CODE, response.overallCode);
    return writer.finish();
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
    units += header.key.length + header.value.length;
  }
  return headers.length * MAX_HEADER_BYTES + units * MAX_BYTES_PER_UNIT;
}

function writeStatus(writer: WireWriter, status: DescriptorStatus): void {
  const statusEnd = writer.mark;
  const seconds = status.durationUntilResetSeconds;
  if (seconds !== undefined) {
    const durationEnd = writer.mark;
    writer.numberField(DURATION_SECONDS, seconds);
    writer.lengthSince(durationEnd, STATUS_DURATION_UNTIL_RESET);
  }
  writer.numberField(STATUS_LIMIT_REMAINING, status.limitRemaining);
  if (status.currentLimit !== undefined) writeLimit(writer, status.currentLimit);
  writer.numberField(STATUS_CODE, status.code);
  writer.lengthSince(statusEnd, RESPONSE_STATUSES);
}

function writeLimit(writer: WireWriter, limit: CurrentLimit): void {
  const limitEnd = writer.mark;
  writer.cachedTextField(LIMIT_NAME, limit.name);
  writer.numberField(LIMIT_UNIT_FIELD, limit.unit);
  writer.numberField(LIMIT_REQUESTS_PER_UNIT, limit.requestsPerUnit);
  writer.lengthSince(limitEnd, STATUS_CURRENT_LIMIT);
}

function writeHeaders(writer: WireWriter, tag: number, headers: readonly HeaderValue[]): void {
  for (let index = headers.length - 1; index >= 0; index--) {
    const header = headers[index] as HeaderValue;
    const headerEnd = writer.mark;
    writer.textField(HEADER_VALUE, header.value);
    writer.cachedTextField(HEADER_KEY, header.key);
    writer.lengthSince(headerEnd, tag);
  }
}
