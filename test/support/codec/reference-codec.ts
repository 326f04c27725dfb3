import {
  createClientCodec,
  deserialize,
  loadRateLimitDefinition,
  messageType,
} from '../../../src/codec/client-codec.js';
import { type ClientCodec, DecodeError, INVALID_REQUEST } from '../../../src/codec/messages.js';
import { fromLoadedRequest, type LoadedRequest, toLoadedResponse } from './loaded-messages.js';
import { isWellFormed, type MessageShape } from './wire-check.js';
import type { ServiceCodec } from './wire-codec.js';

const entryShape: MessageShape = [undefined, 'bytes', 'bytes'];
const overrideShape: MessageShape = [undefined, 'varint', 'varint'];
const wrapperShape: MessageShape = [undefined, 'varint'];
const descriptorShape: MessageShape = [undefined, entryShape, overrideShape, wrapperShape, 'varint'];
/** RateLimitRequest by field number: domain, descriptors, hits_addend. */
export const requestShape: MessageShape = [undefined, 'bytes', descriptorShape, 'varint'];

/**
 * Creates a codec without bounds from @grpc/proto-loader, which builds its encoders and decoders from `proto/`. Reading
 * the files is slow, so create one per process. Property tests compare the hand-written codec (wire-codec.ts) with it.
 */
export function createReferenceCodec(): ServiceCodec & ClientCodec {
  const definition = loadRateLimitDefinition();
  const request = messageType(definition, 'RateLimitRequest');
  const response = messageType(definition, 'RateLimitResponse');
  return {
    decodeRequest(bytes) {
      if (!isWellFormed(bytes, requestShape)) throw new DecodeError(INVALID_REQUEST);
      return fromLoadedRequest(deserialize(request, bytes, INVALID_REQUEST) as LoadedRequest);
    },
    encodeResponse: (message) => response.serialize(toLoadedResponse(message)),
    ...createClientCodec(definition),
  };
}
