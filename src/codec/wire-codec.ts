import { RequestDecoder } from './decode-request.js';
import { ResponseEncoder } from './encode-response.js';
import type { ServiceCodec } from './messages.js';

/** The hand-written codec: the two directions that a server needs, for the two messages of the service. */
export function createWireCodec(): ServiceCodec {
  const decoder = new RequestDecoder();
  const encoder = new ResponseEncoder();
  return {
    decodeRequest: (bytes) => decoder.decode(bytes),
    encodeResponse: (response) => encoder.encode(response),
  };
}
