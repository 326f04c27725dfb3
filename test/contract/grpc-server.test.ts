import { GrpcJsServer } from '../../src/grpc/grpc-js-server.js';
import { runGrpcServerContract } from './grpc-server/contract.js';

runGrpcServerContract({ name: 'grpc-js', newServer: (options) => new GrpcJsServer(options) });
