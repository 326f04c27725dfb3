import type { handleUnaryCall, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { GrpcServer } from '../grpc/grpc-server.js';
import type { Clock } from '../limiter/clock.js';
import type { ReferenceStats } from '../telemetry/reference/reference-stats.js';

type Unary = handleUnaryCall<unknown, unknown>;

/** Adds services to `server` whose unary calls are counted and timed, as the reference does for every one of its. */
export function timedService(
  server: Pick<GrpcServer, 'addService'>,
  stats: ReferenceStats,
  clock: Clock,
): Pick<GrpcServer, 'addService'> {
  return {
    addService(definition: ServiceDefinition, implementation: UntypedServiceImplementation): void {
      const timed: UntypedServiceImplementation = { ...implementation };
      for (const [method, { requestStream, responseStream }] of Object.entries(definition)) {
        const handler = implementation[method];
        if (handler === undefined || requestStream || responseStream) continue;
        const calls = stats.durations(method);
        const unary: Unary = (call, callback) => {
          const startMicros = clock.monotonicMicros();
          calls.began();
          (handler as Unary)(call, (...answer) => {
            calls.ended(clock.monotonicMicros() - startMicros);
            callback(...answer);
          });
        };
        timed[method] = unary;
      }
      server.addService(definition, timed);
    },
  };
}
