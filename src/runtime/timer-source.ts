/** A monotonic clock with timers. Replaced in tests. */
export interface TimerSource {
  /** Returns milliseconds since an arbitrary start. */
  nowMs(): number;
  set(callback: () => void, delayMs: number): unknown;
  clear(timer: unknown): void;
  /** Calls back in the next turn of the event loop. */
  nextTurn(callback: () => void): void;
}

export const SYSTEM_TIMERS: TimerSource = {
  nowMs: () => performance.now(),
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
  nextTurn: (callback) => setImmediate(callback),
};
