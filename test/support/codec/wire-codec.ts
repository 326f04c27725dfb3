import { RequestDecoder } from '../../../src/codec/decode-request.js';
import { ResponseEncoder } from '../../../src/codec/encode-response.js';
import type { RateLimitRequest, RateLimitResponse, RequestBounds } from '../../../src/codec/messages.js';

/** The server side of a codec. */
export interface ServiceCodec {
  /** See {@link RequestDecoder.decode}. */
  decodeRequest(bytes: Uint8Array): RateLimitRequest;
  encodeResponse(response: RateLimitResponse): Uint8Array;
}

/** Creates the codec of the server. */
export function createWireCodec(bounds?: RequestBounds): ServiceCodec {
  const decoder = new RequestDecoder(bounds);
  return { decodeRequest: (bytes) => decoder.decode(bytes), encodeResponse };
}

const encoder = new ResponseEncoder();

/** Encodes a response as a server does. */
export function encodeResponse(response: RateLimitResponse): Uint8Array {
  const bytes = Buffer.alloc(encoder.maxLength(response));
  return bytes.subarray(encoder.writeBefore(response, bytes, bytes.length));
}
