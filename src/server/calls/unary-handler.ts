import { GrpcError, STATUS, type UnaryHandler } from '../../grpc/grpc-server.js';
import type { Clock } from '../../limiter/clock.js';
import type { Caller } from '../../service/caller.js';
import { Refusal } from '../../service/refusal.js';
import type { ShouldRateLimit } from '../../service/should-rate-limit.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { Decide } from '../ports/json-endpoint.js';
import type { CallInstrumentation } from './call-instrumentation.js';
import { headerLookup } from './trace-id.js';

/**
 * Returns the gRPC handler of ShouldRateLimit. It turns refusals into gRPC statuses, and counts and times each call.
 * `instrumentation` is undefined if neither logs nor traces need it.
 */
export function unaryHandler(
  service: Pick<ShouldRateLimit, 'handle'>,
  metrics: Metrics,
  clock: Clock,
  instrumentation: CallInstrumentation | undefined,
): UnaryHandler {
  const calls = metrics.reference.durations('ShouldRateLimit');
  const { requestSeconds } = metrics;
  const ended = (startMicros: number): void => {
    const micros = clock.monotonicMicros() - startMicros;
    requestSeconds.observe(micros / 1e6);
    calls.ended(micros);
  };
  const finish = (result: Uint8Array | Refusal): Uint8Array => {
    if (!(result instanceof Refusal)) return result;
    const code = result.kind === 'bad_request' ? 'INVALID_ARGUMENT' : 'UNAVAILABLE';
    metrics.refused(code);
    throw new GrpcError(STATUS[code], result.message);
  };
  return (message, call) => {
    // The clock is read once for all requests that arrived together, and once for each answer.
    const startMicros = call.receivedMicros;
    calls.began();
    const result =
      instrumentation === undefined
        ? service.handle(message, call)
        : instrumentation.handle(call, (caller) => service.handle(message, caller));
    if (result instanceof Promise) {
      return result.then((late) => {
        ended(startMicros);
        return finish(late);
      });
    }
    ended(startMicros);
    return finish(result);
  };
}

/**
 * Returns a function that decides requests that did not arrive over gRPC. The HTTP endpoint counts these calls itself.
 */
export function decideForHttp(
  service: Pick<ShouldRateLimit, 'decide'>,
  clock: Clock,
  instrumentation: CallInstrumentation | undefined,
): Decide {
  return (request, timeoutMicros, { connection, cancelled, headers }) => {
    const deadlineMicros = clock.monotonicMicros() + timeoutMicros;
    const caller = { deadlineMicros, connection, cancelled };
    if (instrumentation === undefined) return service.decide(request, caller);
    const decide = (named: Caller) => service.decide(request, named);
    return instrumentation.handleHttp(caller, headerLookup(headers), decide);
  };
}
