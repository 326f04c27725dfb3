import { GrpcJsServer } from '../grpc/grpc-js-server.js';
import type { GrpcServer, GrpcServerOptions } from '../grpc/grpc-server.js';
import type { Settings } from './settings-table.js';
import { StartError } from './start-error.js';

/** The gRPC server that GRPC_TRANSPORT names. */
export function createGrpcServer(
  transport: Settings['grpcTransport'],
  options: GrpcServerOptions,
): GrpcServer {
  if (transport === 'h2') throw new StartError(['GRPC_TRANSPORT: h2 is not there yet; choose grpc-js']);
  return new GrpcJsServer(options);
}
