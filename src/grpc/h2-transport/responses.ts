import { HeaderField } from '../../h2/hpack/header-field.js';
import type { ServerStream } from '../../h2/request-handler.js';
import { type GrpcError, STATUS } from '../grpc-server.js';

const STATUS_200 = new HeaderField(':status', '200');
/** The encodings that requests may use. */
export const ACCEPT_ENCODING = new HeaderField('grpc-accept-encoding', 'identity,gzip', true);

/** Response headers by the content type of the request. */
export const HEADERS = [STATUS_200, new HeaderField('content-type', 'application/grpc', true)];
export const HEADERS_PROTO = [STATUS_200, new HeaderField('content-type', 'application/grpc+proto', true)];
export type ResponseFields = readonly HeaderField[];

export const TRAILERS_OK = [new HeaderField('grpc-status', '0', true)];

const NO_FIELDS: readonly HeaderField[] = [];
const PLAIN = /^[ -$&-~]*$/;

/**
 * Encodes a status message: UTF-8, with %XX for everything except printable ASCII (gRPC over HTTP/2, Status-Message).
 */
export function percentEncode(message: string): string {
  if (PLAIN.test(message)) return message;
  let encoded = '';
  for (const byte of Buffer.from(message, 'utf8')) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/** Caches the fields of the last error, because the same error often recurs during an outage. */
let lastCode = -1;
let lastMessage = '';
let lastFields: readonly HeaderField[] = NO_FIELDS;

/** Returns `grpc-status` and `grpc-message`. An empty message is omitted. */
export function statusFields(code: number, message: string): readonly HeaderField[] {
  if (code === lastCode && message === lastMessage) return lastFields;
  const fields = [new HeaderField('grpc-status', String(code))];
  if (message !== '') fields.push(new HeaderField('grpc-message', percentEncode(message)));
  lastCode = code;
  lastMessage = message;
  lastFields = fields;
  return fields;
}

/** Ends a call that has sent nothing yet with only its status (Trailers-Only). */
export function sendError(stream: ServerStream, headers: ResponseFields, error: GrpcError): void {
  const fields = [...headers, ...statusFields(error.code, error.message)];
  if (error.code === STATUS.UNIMPLEMENTED) fields.push(ACCEPT_ENCODING);
  stream.sendHeaders(fields, true);
}
