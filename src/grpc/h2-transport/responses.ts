import { HeaderField } from '../../h2/hpack/header-field.js';
import type { ServerStream } from '../../h2/request-handler.js';
import { type GrpcError, STATUS } from '../grpc-server.js';

const STATUS_200 = new HeaderField(':status', '200');
/** The encodings that requests may have. */
export const ACCEPT_ENCODING = new HeaderField('grpc-accept-encoding', 'identity,gzip', true);

/** Headers of a response by the content type it has: that of its request. */
export const HEADERS = [STATUS_200, new HeaderField('content-type', 'application/grpc', true)];
export const HEADERS_PROTO = [STATUS_200, new HeaderField('content-type', 'application/grpc+proto', true)];
export type ResponseFields = readonly HeaderField[];

export const TRAILERS_OK = [new HeaderField('grpc-status', '0', true)];

const NO_FIELDS: readonly HeaderField[] = [];
const PLAIN = /^[ -$&-~]*$/;

/**
 * A status message for the wire: UTF-8, with %XX for what is not printable ASCII (gRPC over HTTP/2, Status-Message).
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

/** The last error's fields: when something is down, one error follows the other. */
let lastCode = -1;
let lastMessage = '';
let lastFields: readonly HeaderField[] = NO_FIELDS;

/** `grpc-status` and `grpc-message`; a message that is empty is left out. */
export function statusFields(code: number, message: string): readonly HeaderField[] {
  if (code === lastCode && message === lastMessage) return lastFields;
  const fields = [new HeaderField('grpc-status', String(code))];
  if (message !== '') fields.push(new HeaderField('grpc-message', percentEncode(message)));
  lastCode = code;
  lastMessage = message;
  lastFields = fields;
  return fields;
}

/** Ends a call that has sent nothing yet with its status alone (Trailers-Only). */
export function sendError(stream: ServerStream, headers: ResponseFields, error: GrpcError): void {
  const fields = [...headers, ...statusFields(error.code, error.message)];
  if (error.code === STATUS.UNIMPLEMENTED) fields.push(ACCEPT_ENCODING);
  stream.sendHeaders(fields, true);
}
