import type { RateLimitRequest, RateLimitResponse } from '../codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../codec/rls-definition.js';
import type { GrpcJsServer } from '../grpc/grpc-js-server.js';
import type { GrpcServerOptions } from '../grpc/grpc-server.js';
import { H2GrpcServer } from '../grpc/h2-transport/h2-grpc-server.js';
import type { Clock } from '../limiter/clock.js';
import type { ShouldRateLimit } from '../service/should-rate-limit.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { CallInstrumentation, MessageHandler } from './calls/call-instrumentation.js';
import { unaryHandler } from './calls/unary-handler.js';
import type { Settings } from './settings/settings-table.js';

/** The gRPC server of the fast stack or of the plain stack. */
export type RateLimitServer = H2GrpcServer | GrpcJsServer;

/** Creates the gRPC server that GRPC_TRANSPORT selects. */
export function createGrpcServer(
  transport: Settings['grpcTransport'],
  options: GrpcServerOptions,
): RateLimitServer {
  if (transport === 'h2') return new H2GrpcServer(options);
  // Loaded only if needed, because loading code takes most of a start.
  const { GrpcJsServer } = require('../grpc/grpc-js-server.js') as typeof import('../grpc/grpc-js-server.js');
  return new GrpcJsServer(options);
}

/** Adds ShouldRateLimit to `server`. The fast stack passes bytes to the service, the plain stack decoded messages. */
export function addRateLimits(
  server: RateLimitServer,
  service: ShouldRateLimit,
  context: {
    readonly metrics: Metrics;
    readonly clock: Clock;
    readonly instrumentation: CallInstrumentation | undefined;
  },
): void {
  const { metrics, clock, instrumentation } = context;
  if (server instanceof H2GrpcServer) {
    server.addUnary(SHOULD_RATE_LIMIT_PATH, unaryHandler(service, metrics, clock, instrumentation));
    return;
  }
  server.addRateLimits(unaryHandler(decodedHandler(service), metrics, clock, instrumentation));
}

/** Returns a handler of decoded requests. */
export function decodedHandler(
  service: ShouldRateLimit,
): MessageHandler<RateLimitRequest, RateLimitResponse> {
  return { handle: (request, caller) => service.decide(request, caller) };
}
