import { createClientCodec } from '../../src/codec/client-codec.js';
import { createWireCodec } from '../support/codec/wire-codec.js';
import { runCodecContract } from './codec-contract.js';

// Only the server side is hand-written. The client side is @grpc/proto-loader.
const client = createClientCodec();
runCodecContract({ name: 'by hand', newCodec: (bounds) => ({ ...client, ...createWireCodec(bounds) }) });
