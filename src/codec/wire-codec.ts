import { RequestDecoder } from './decode-request.js';
import { domainOf, mayOverride } from './domain-of.js';
import { ResponseEncoder } from './encode-response.js';
import { type CodecOptions, MAX_ENTRIES, maxFields, type ServiceCodec } from './messages.js';

/** Creates the hand-written codec, which implements the two directions that a server needs. */
export function createWireCodec(options?: CodecOptions): ServiceCodec {
  const decoder = new RequestDecoder(options);
  const fields = maxFields(options?.maxDescriptors ?? MAX_ENTRIES);
  const encoder = new ResponseEncoder();
  return {
    decodeRequest: (bytes) => decoder.decode(bytes),
    decodeSteps: (bytes) => decoder.steps(bytes),
    domainOf: (bytes) => domainOf(bytes, fields),
    mayOverride,
    encodeResponse: (response) => encoder.encode(response),
  };
}
