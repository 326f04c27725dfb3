import type { Clock } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { Signal } from '../../runtime/signal.js';
import type { FailureCounts } from '../../telemetry/history/failure-counts.js';
import type { RateCounts } from '../../telemetry/history/rate-counts.js';
import { RateHistory, STEP_SECONDS } from '../../telemetry/history/rate-history.js';

/**
 * Tells what all processes that decide have decided since they were asked last, and resolves with what was answered
 * without a decision; those that do not answer later.
 */
export type CollectRates = (take: (counts: RateCounts) => void) => Promise<FailureCounts>;

const STEP_MICROS = STEP_SECONDS * 1e6;

/** What was decided in the last hour, and when the last step of that ended. */
export interface RecordedHistory {
  readonly history: RateHistory;
  /** Monotonic, microseconds. */
  readonly endedMicros: number;
  /** `listener` runs at the end of each step. */
  onStep(listener: () => void): void;
}

/** Counts what `rates` tells, step by step, of `maxRules` rules (HISTORY_RULES) and of all together. */
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
      // After a time in which this process could not count, as on a machine that slept, there are steps without counts.
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
