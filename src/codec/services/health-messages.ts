import { MAX_BYTES_PER_UNIT } from '../wire-writer.js';
import { FIELD_HEAD_BYTES, ServiceReader, writeMessage } from './service-reader.js';

/** grpc.health.v1.HealthCheckResponse.ServingStatus, by number. */
const SERVING_STATUS = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const;
/** State of a service, as named in grpc.health.v1. */
export type ServingStatus = (typeof SERVING_STATUS)[number];

/** grpc.health.v1.HealthCheckRequest. */
export interface HealthRequest {
  /** Name of a service. Empty: the whole server. */
  readonly service: string;
}
/** grpc.health.v1.HealthCheckResponse. */
export interface HealthResponse {
  readonly status: ServingStatus;
}
/** grpc.health.v1.HealthListResponse. */
export interface HealthListResponse {
  readonly statuses: Readonly<Record<string, HealthResponse>>;
}

// Tags: field number * 8 + wire type.
const SERVICE = 0x0a;
const STATUS = 0x08;
const STATUSES = 0x0a;
const MAP_KEY = 0x0a;
const MAP_VALUE = 0x12;

/** Encodes a HealthCheckRequest. */
export function encodeHealthRequest({ service }: HealthRequest): Buffer {
  return writeMessage(FIELD_HEAD_BYTES + service.length * MAX_BYTES_PER_UNIT, (writer) =>
    writer.textField(SERVICE, service),
  );
}

/** Decodes a HealthCheckRequest. Throws DecodeError if the bytes are invalid. */
export function decodeHealthRequest(bytes: Uint8Array): HealthRequest {
  const reader = new ServiceReader(bytes);
  let service = '';
  reader.forEachField((tag, end) => {
    if (tag !== SERVICE) return false;
    service = reader.text(end);
    return true;
  });
  return { service };
}

/** Decodes a HealthListRequest, which has no fields yet. Throws DecodeError if the bytes are invalid. */
export function decodeHealthListRequest(bytes: Uint8Array): object {
  new ServiceReader(bytes).forEachField(() => false);
  return {};
}

/** Encodes a HealthCheckResponse. */
export function encodeHealthResponse({ status }: HealthResponse): Buffer {
  return Buffer.of(STATUS, SERVING_STATUS.indexOf(status));
}

/**
 * Decodes a HealthCheckResponse. Returns UNKNOWN for a status that this version does not know. Throws DecodeError if
 * the bytes are invalid.
 */
export function decodeHealthResponse(bytes: Uint8Array): HealthResponse {
  const reader = new ServiceReader(bytes);
  let status: ServingStatus = 'UNKNOWN';
  reader.forEachField((tag, end) => {
    if (tag !== STATUS) return false;
    status = SERVING_STATUS[reader.int32(end)] ?? 'UNKNOWN';
    return true;
  });
  return { status };
}

export function encodeHealthList({ statuses }: HealthListResponse): Buffer {
  const entries = Object.entries(statuses);
  const room = entries.map(([name]) => name.length * MAX_BYTES_PER_UNIT + 3 * FIELD_HEAD_BYTES + 2);
  const maxBytes = room.reduce((sum, bytes) => sum + bytes, 0);
  return writeMessage(maxBytes, (writer) => {
    for (const [name, response] of entries.reverse()) {
      const { position } = writer;
      writer.bytesField(MAP_VALUE, encodeHealthResponse(response));
      writer.presentTextField(MAP_KEY, name);
      writer.lengthSince(position, STATUSES);
    }
  });
}
