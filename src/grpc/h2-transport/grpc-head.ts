import type { RequestHead } from '../../h2/request-handler.js';
import { timeoutMicros } from '../timeout-header.js';
import { HEADERS, HEADERS_PROTO, type NotGrpcReason, type ResponseFields } from './responses.js';

/** The values that gRPC reads from the header fields of a request. */
export interface GrpcHead {
  /** Why this is not a gRPC request. Undefined if it is one. */
  readonly notGrpc: NotGrpcReason | undefined;
  /** Headers of the response, with the content type of the request. */
  readonly responseHeaders: ResponseFields;
  /**
   * Timeout from `grpc-timeout` in microseconds. Infinity if it is absent or longer than any timer, NaN if it is
   * malformed.
   */
  readonly timeoutMicros: number;
  readonly timeoutText: string;
  /** `grpc-encoding`: the encoding of compressed messages. */
  readonly encoding: string;
}

/** Reads the fields that gRPC defines. The first of several fields with the same name counts. */
export function readGrpcHead(head: RequestHead): GrpcHead {
  let contentType: string | undefined;
  let timeoutText: string | undefined;
  let encoding: string | undefined;
  const fields = head.fields;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    switch (fields[index]) {
      case 'content-type':
        contentType ??= fields[index + 1];
        break;
      case 'grpc-timeout':
        timeoutText ??= fields[index + 1];
        break;
      case 'grpc-encoding':
        encoding ??= fields[index + 1];
        break;
    }
  }
  const responseHeaders = responseHeadersOf(contentType);
  return {
    notGrpc: responseHeaders === undefined ? 'content type' : head.method === 'POST' ? undefined : 'method',
    responseHeaders: responseHeaders ?? HEADERS,
    timeoutMicros: timeoutText === undefined ? Number.POSITIVE_INFINITY : timeoutMicros(timeoutText),
    timeoutText: timeoutText ?? '',
    encoding: encoding ?? 'identity',
  };
}

/** Undefined if the request is not gRPC. This includes gRPC-Web and message formats other than protobuf. */
function responseHeadersOf(contentType: string | undefined): ResponseFields | undefined {
  if (contentType === undefined) return undefined;
  if (contentType === 'application/grpc') return HEADERS;
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === 'application/grpc') return HEADERS;
  return type === 'application/grpc+proto' ? HEADERS_PROTO : undefined;
}
