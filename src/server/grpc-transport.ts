import type { GrpcServer, GrpcServerOptions } from '../grpc/grpc-server.js';
import { H2GrpcServer } from '../grpc/h2-transport/h2-grpc-server.js';
import type { Settings } from './settings/settings-table.js';

/** Creates the gRPC server that GRPC_TRANSPORT selects. */
export function createGrpcServer(
  transport: Settings['grpcTransport'],
  options: GrpcServerOptions,
): GrpcServer {
  if (transport === 'h2') return new H2GrpcServer(options);
  // Loaded only if needed, because loading code takes most of a start.
  const { GrpcJsServer } = require('../grpc/grpc-js-server.js') as typeof import('../grpc/grpc-js-server.js');
  return new GrpcJsServer(options);
}
