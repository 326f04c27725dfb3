import { createReferenceCodec } from '../../src/codec/reference-codec.js';
import { runCodecContract } from './codec-contract.js';

runCodecContract({ name: 'reference (proto-loader)', newCodec: createReferenceCodec });
