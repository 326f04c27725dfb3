import type { SeenCall } from '../latency/answer-log.js';

/**
 * How much later than its deadline an answer may be written, in milliseconds, beyond what the latest one was without a
 * fault, of which at most as much again counts: timers fire on whole milliseconds, and garbage is collected.
 */
export const MARGIN_MS = 25;

/** How long weir took for answers, from bytes read to bytes written, without the time in which it had no core. */
export interface Spread {
  readonly calls: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

function spreadOf(tookMs: readonly number[]): Spread {
  const sorted = [...tookMs].sort((one, other) => one - other);
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return { calls: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), longestMs: at(1) };
}

/** Tells late answers from others, once it knows what is usual. */
export class Lateness {
  private readonly usual: number[] = [];
  private baseline: Spread | undefined;
  private usualLateMs = 0;

  /** Longest that an answer may come after its deadline. */
  get marginMs(): number {
    return MARGIN_MS + Math.min(MARGIN_MS, this.usualLateMs);
  }

  /** What calls took while nothing was wrong; the end of the baseline. */
  endBaseline(): Spread {
    this.baseline = spreadOf(this.usual);
    return this.baseline;
  }

  /** By how much a call was late, milliseconds; 0 for one that was not. Until the baseline ends no call is. */
  lateBy({ tookMs, waitedMs }: SeenCall, deadlineMs: number): number {
    const ownMs = tookMs - waitedMs;
    if (this.baseline === undefined) {
      this.usual.push(ownMs);
      this.usualLateMs = Math.max(this.usualLateMs, ownMs - deadlineMs);
      return 0;
    }
    const beyond = ownMs - deadlineMs;
    return beyond > this.marginMs ? beyond : 0;
  }
}
