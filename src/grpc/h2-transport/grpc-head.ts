import type { RequestHead } from '../../h2/request-handler.js';
import { timeoutMicros } from '../timeout-header.js';
import type { NotGrpcReason } from './not-grpc.js';
import { HEADERS, HEADERS_PROTO, type ResponseFields } from './responses.js';

/** What gRPC reads from a request's header fields. */
export interface GrpcHead {
  /** Why this is no gRPC request, if it is none. */
  readonly notGrpc: NotGrpcReason | undefined;
  /** Headers of the response, with the request's content type. */
  readonly responseHeaders: ResponseFields;
  /** From `grpc-timeout`, microseconds; Infinity without, and for one longer than any timer. NaN: malformed. */
  readonly timeoutMicros: number;
  readonly timeoutText: string;
  /** `grpc-encoding`: what compressed messages are compressed with. */
  readonly encoding: string;
}

/** Reads the fields that gRPC gives a meaning. Of fields that come twice the first counts. */
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

/** Undefined for what is not gRPC: gRPC-Web and message formats other than protobuf included. */
function responseHeadersOf(contentType: string | undefined): ResponseFields | undefined {
  if (contentType === undefined) return undefined;
  if (contentType === 'application/grpc') return HEADERS;
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === 'application/grpc') return HEADERS;
  return type === 'application/grpc+proto' ? HEADERS_PROTO : undefined;
}
