import type { GrpcServerOptions } from '../../../src/grpc/grpc-server.js';

/** Bounds of a gRPC server for tests that do not test them. */
export const SERVER_BOUNDS = {
  keptMessageBytes: 4 * 1024 * 1024,
  maxBufferedBytes: 32 * 1024 * 1024,
  maxConnections: 20_000,
} as const satisfies Partial<GrpcServerOptions>;
