import { createReferenceCodec } from '../support/codec/reference-codec.js';
import { createWireCodec } from '../../src/codec/wire-codec.js';
import { runCodecContract } from './codec-contract.js';

runCodecContract({ name: 'reference (proto-loader)', newCodec: createReferenceCodec });
// Only the server's side is written by hand: the reference codec is the client.
runCodecContract({
  name: 'by hand',
  newCodec: (options) => ({ ...createReferenceCodec(options), ...createWireCodec(options) }),
});
