import { GrpcJsServer } from '../../src/grpc/grpc-js-server.js';
import { H2GrpcServer } from '../../src/grpc/h2-transport/h2-grpc-server.js';
import { TRANSPORTS_AT_HAND } from '../support/weir/transports.js';
import { runGrpcServerContract } from './grpc-server/contract.js';

const SERVERS = { h2: H2GrpcServer, 'grpc-js': GrpcJsServer };

for (const name of TRANSPORTS_AT_HAND) {
  runGrpcServerContract({ name, newServer: (options) => new SERVERS[name](options) });
}
