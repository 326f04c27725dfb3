import { GrpcJsServer } from '../grpc/grpc-js-server.js';
import type { GrpcServer, GrpcServerOptions } from '../grpc/grpc-server.js';
import { H2GrpcServer } from '../grpc/h2-transport/h2-grpc-server.js';
import type { Settings } from './settings/settings-table.js';

/** The gRPC server that GRPC_TRANSPORT names. */
export function createGrpcServer(
  transport: Settings['grpcTransport'],
  options: GrpcServerOptions,
): GrpcServer {
  return transport === 'h2' ? new H2GrpcServer(options) : new GrpcJsServer(options);
}
