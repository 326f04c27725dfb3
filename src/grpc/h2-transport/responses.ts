import { HeaderField } from '../../h2/hpack/header-field.js';
import type { ServerStream } from '../../h2/request-handler.js';
import { type GrpcError, STATUS } from '../grpc-server.js';
import { type BoundMethod, FINISHED_CALL, type StreamHandler } from './bound-method.js';
import type { Expiring } from './deadline-queue.js';
import type { GrpcServerState } from './grpc-server-state.js';

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

/** Omits an empty message. */
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

/** Why a request is not gRPC: its content type, or a method other than POST. */
export type NotGrpcReason = 'content type' | 'method';

const PLAIN_TEXT = new HeaderField('content-type', 'text/plain; charset=utf-8');
const UNSUPPORTED_MEDIA_TYPE = [new HeaderField(':status', '415'), PLAIN_TEXT];
const METHOD_NOT_ALLOWED = [new HeaderField(':status', '405'), PLAIN_TEXT, new HeaderField('allow', 'POST')];
const TEXT = Buffer.from('This port accepts only gRPC: POST with content-type application/grpc.\n');

/** Answers requests that are not gRPC calls with 415 or 405 and a line of text. */
export class NotGrpc implements BoundMethod {
  readonly #reason: NotGrpcReason;
  readonly #context: GrpcServerState;

  constructor(reason: NotGrpcReason, context: GrpcServerState) {
    this.#reason = reason;
    this.#context = context;
  }

  begin(stream: ServerStream, requestEnded: boolean): void {
    if (requestEnded) sendNotGrpc(stream, this.#reason);
    else stream.state = new DiscardedRequest(stream, this.#reason, this.#context);
  }
}

/**
 * A request whose body is discarded. The response is sent at the end of the request, so that HTTP/2 errors before the
 * end are still reported as such. It is sent earlier if the request takes longer, or contains more bytes, than a call
 * may.
 */
class DiscardedRequest implements StreamHandler, Expiring {
  dueAt = 0;
  heapIndex = -1;
  readonly #stream: ServerStream;
  readonly #reason: NotGrpcReason;
  readonly #context: GrpcServerState;
  #bytesLeft: number;

  constructor(stream: ServerStream, reason: NotGrpcReason, context: GrpcServerState) {
    this.#stream = stream;
    this.#reason = reason;
    this.#context = context;
    this.#bytesLeft = context.maxMessageBytes;
    if (context.receiveTimeoutMs !== Number.POSITIVE_INFINITY) {
      context.deadlines.add(this, context.receiveTimeoutMs);
    }
  }

  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number, endStream: boolean): void {
    stream.consumed(end - start);
    this.#bytesLeft -= end - start;
    if (endStream || this.#bytesLeft < 0) this.#answer();
  }

  onTrailers(): void {
    this.#answer();
  }

  onDrained(): void {}

  onStreamReset(): void {
    this.#context.deadlines.remove(this);
  }

  expire(): void {
    this.#answer();
  }

  #answer(): void {
    this.#context.deadlines.remove(this);
    sendNotGrpc(this.#stream, this.#reason);
  }
}

function sendNotGrpc(stream: ServerStream, reason: NotGrpcReason): void {
  stream.state = FINISHED_CALL;
  // RFC 9110 section 9.3.2: a response to HEAD has no content.
  const bodiless = stream.head.method === 'HEAD';
  stream.sendHeaders(reason === 'method' ? METHOD_NOT_ALLOWED : UNSUPPORTED_MEDIA_TYPE, bodiless);
  if (!bodiless) stream.sendData(TEXT, true);
}
