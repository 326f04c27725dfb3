import type { Timed } from '../grpc/health.js';
import type { Clock } from '../limiter/clock.js';
import type { ReferenceStats } from '../telemetry/reference/reference-stats.js';

/** Counts and times the calls of unary methods, as the reference does for all of its methods. */
export function timedBy(stats: ReferenceStats, clock: Clock): Timed {
  return (method, answer) => {
    const calls = stats.durations(method);
    return (request) => {
      const startMicros = clock.monotonicMicros();
      calls.began();
      try {
        return answer(request);
      } finally {
        calls.ended(clock.monotonicMicros() - startMicros);
      }
    };
  };
}
