import {
  createClientCodec,
  deserialize,
  loadRateLimitDefinition,
  messageType,
} from '../../../src/codec/client-codec.js';
import {
  fromLoadedRequest,
  type LoadedRequest,
  toLoadedResponse,
} from '../../../src/codec/loaded-messages.js';
import {
  type ClientCodec,
  type CodecOptions,
  DecodeError,
  INVALID_REQUEST,
  MAX_ENTRIES,
  maxFields,
  moreDescriptorsThan,
  type ServiceCodec,
  TOO_MANY_ENTRIES,
  tooManyFields,
} from '../../../src/codec/messages.js';
import { faultOf, type MessageShape, type WireBounds } from './wire-check.js';

const entryShape: MessageShape = [undefined, 'bytes', 'bytes'];
const overrideShape: MessageShape = [undefined, 'varint', 'varint'];
const wrapperShape: MessageShape = [undefined, 'varint'];
const descriptorShape: MessageShape = [undefined, entryShape, overrideShape, wrapperShape, 'varint'];
/** RateLimitRequest by field number: domain, descriptors, hits_addend. */
export const requestShape: MessageShape = [undefined, 'bytes', descriptorShape, 'varint'];

/** Bounds of the messages that protobufjs, which has no bounds, may decode. */
function requestBounds(maxDescriptors: number): WireBounds {
  const fields = maxFields(maxDescriptors);
  return {
    fields: { most: fields, sentence: tooManyFields(fields) },
    messages: new Map([
      [descriptorShape, { most: maxDescriptors, sentence: moreDescriptorsThan(maxDescriptors) }],
      [entryShape, { most: MAX_ENTRIES, sentence: TOO_MANY_ENTRIES }],
    ]),
  };
}

/** A decoder that decodes a whole request at once. */
export type RequestReader = Pick<ServiceCodec, 'decodeRequest'>;
/** Both sides of the codec, without the functions that decode a request in slices or in part. */
export type Codec = RequestReader & Pick<ServiceCodec, 'encodeResponse'> & ClientCodec;

/**
 * Creates a codec from @grpc/proto-loader, which builds its encoders and decoders from `proto/`. Reading the files is
 * slow, so create one per process. Property tests compare the hand-written codec (wire-codec.ts) with it.
 */
export function createReferenceCodec({ maxDescriptors = MAX_ENTRIES }: CodecOptions = {}): Codec {
  const definition = loadRateLimitDefinition();
  const request = messageType(definition, 'RateLimitRequest');
  const response = messageType(definition, 'RateLimitResponse');
  const bounds = requestBounds(maxDescriptors);
  const check = (bytes: Uint8Array): void => {
    const fault = faultOf(bytes, requestShape, bounds);
    if (fault !== undefined) throw new DecodeError(fault === 'malformed' ? INVALID_REQUEST : fault);
  };
  return {
    decodeRequest(bytes) {
      check(bytes);
      return fromLoadedRequest(deserialize(request, bytes, INVALID_REQUEST) as LoadedRequest);
    },
    encodeResponse: (message) => response.serialize(toLoadedResponse(message)),
    ...createClientCodec(definition),
  };
}
