import type { Clock } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { Signal } from '../../runtime/signal.js';
import type { RateCounts } from '../../telemetry/counted-rule.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import { RateHistory, STEP_SECONDS } from '../../telemetry/history/rate-history.js';

/**
 * Passes the decisions that all processes made since the previous call to `take`. Resolves with the number of requests
 * that the store could not decide. Processes that do not answer report their decisions with a later call.
 */
export type CollectRates = (take: (counts: RateCounts) => void) => Promise<FailureCounts>;

const STEP_MICROS = STEP_SECONDS * 1e6;

/** Decisions of the last hour, and the end of the last step. */
export interface RecordedHistory {
  readonly history: RateHistory;
  /** Monotonic, in microseconds. */
  readonly endedMicros: number;
  /** Calls `listener` at the end of each step. */
  onStep(listener: () => void): void;
}

/**
 * Records the decisions that `rates` returns in steps, for up to `maxRules` rules (HISTORY_RULES) and for all rules
 * together.
 */
export function recordHistory(
  maxRules: number,
  clock: Clock,
  rates: CollectRates,
  onError: (error: unknown) => void,
  closers: Closers,
): RecordedHistory {
  const history = new RateHistory(maxRules);
  const stepped = new Signal();
  let endedMicros = clock.monotonicMicros();
  let counting = false;
  const count = async (): Promise<void> => {
    if (counting) return;
    counting = true;
    try {
      history.addFailures(await rates((counts) => history.add(counts)));
      const now = clock.monotonicMicros();
      // If this process could not run for some time, as on a suspended machine, steps without counts follow.
      history.end(Math.round((now - endedMicros) / STEP_MICROS));
      endedMicros = now;
      stepped.emit();
    } catch (error) {
      onError(error);
    } finally {
      counting = false;
    }
  };
  const timer = setInterval(() => void count(), STEP_SECONDS * 1000);
  timer.unref();
  closers.add(async () => clearInterval(timer));
  return {
    history,
    get endedMicros() {
      return endedMicros;
    },
    onStep: stepped.add,
  };
}
