import { createClientCodec } from '../../src/codec/client-codec.js';
import { createWireCodec } from '../../src/codec/wire-codec.js';
import { runCodecContract } from './codec-contract.js';

// Only the server's side is written by hand: @grpc/proto-loader is the client.
const client = createClientCodec();
runCodecContract({ name: 'by hand', newCodec: (options) => ({ ...client, ...createWireCodec(options) }) });
