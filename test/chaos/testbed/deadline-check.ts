import type { RecordedCall } from '../latency/answer-log.js';

/**
 * Tolerated delay of an answer after its deadline, in milliseconds, because timers fire at whole milliseconds and the
 * garbage collector runs. If answers are late even without a fault, their delay is added, up to this value again.
 */
export const MARGIN_MS = 25;
/**
 * Part of the time in which the thread waited for a core that is tolerated in addition. On a busy machine, the thread
 * then does the work that has arrived meanwhile, before it can answer.
 */
const BACKLOG = 0.1;

/** Times from reading a request to writing its answer, without the time in which the thread waited for a core. */
export interface LatencySummary {
  readonly calls: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

function summarize(tookMs: readonly number[]): LatencySummary {
  const sorted = [...tookMs].sort((one, other) => one - other);
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return { calls: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}

/** Detects late answers. Before {@link endBaseline}, it measures the latency without faults. */
export class DeadlineCheck {
  private readonly baselineMs: number[] = [];
  private baseline: LatencySummary | undefined;
  private baselineDelayMs = 0;

  /** Maximum tolerated delay of an answer after its deadline. */
  get marginMs(): number {
    return MARGIN_MS + Math.min(MARGIN_MS, this.baselineDelayMs);
  }

  /** Ends the baseline, and returns its latency. */
  endBaseline(): LatencySummary {
    this.baseline = summarize(this.baselineMs);
    return this.baseline;
  }

  /** Returns the delay of an answer after its deadline, in milliseconds; 0 if it is in time or part of the baseline. */
  delayOf({ tookMs, waitedMs }: RecordedCall, deadlineMs: number): number {
    const latencyMs = tookMs - waitedMs;
    const delayMs = latencyMs - deadlineMs;
    if (this.baseline === undefined) {
      this.baselineMs.push(latencyMs);
      this.baselineDelayMs = Math.max(this.baselineDelayMs, delayMs);
      return 0;
    }
    return delayMs > this.marginMs + BACKLOG * waitedMs ? delayMs : 0;
  }
}
