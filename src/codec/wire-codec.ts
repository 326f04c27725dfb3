import { RequestDecoder } from './decode-request.js';
import { ResponseEncoder } from './encode-response.js';
import type { RequestBounds, ServiceCodec } from './messages.js';

/** Creates the hand-written codec, which implements the two directions that a server needs. */
export function createWireCodec(bounds?: RequestBounds): ServiceCodec {
  const decoder = new RequestDecoder(bounds);
  const encoder = new ResponseEncoder();
  return {
    decodeRequest: (bytes) => decoder.decode(bytes),
    encodeResponse: (response) => encoder.encode(response),
  };
}
