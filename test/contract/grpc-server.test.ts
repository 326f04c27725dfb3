import { GrpcJsServer } from '../../src/grpc/grpc-js-server.js';
import { H2GrpcServer } from '../../src/grpc/h2-transport/h2-grpc-server.js';
import { runGrpcServerContract } from './grpc-server/contract.js';

runGrpcServerContract({ name: 'grpc-js', newServer: (options) => new GrpcJsServer(options) });
runGrpcServerContract({ name: 'h2', newServer: (options) => new H2GrpcServer(options) });
