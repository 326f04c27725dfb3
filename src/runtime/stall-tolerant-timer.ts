/** A timer that fires at least this late shows that the process was stalled. Milliseconds. */
const STALL_THRESHOLD_MS = 50;

/**
 * A timeout for an external event that tolerates stalls of this process. If the process was stalled, by other processes
 * or by its own work, its timers fire before it reads what has arrived meanwhile. The timer then reads first, and
 * extends the timeout once by the duration of the stall.
 */
export class StallTolerantTimer {
  #timer: NodeJS.Timeout;
  #immediate: NodeJS.Immediate | undefined;

  /** Calls `onTimeout` once after `ms` milliseconds, unless the timer is stopped before. */
  constructor(ms: number, onTimeout: () => void) {
    const dueMs = performance.now() + ms;
    const end = (): void => {
      this.#immediate = setImmediate(onTimeout);
    };
    this.#timer = setTimeout(() => {
      const lateMs = performance.now() - dueMs;
      if (lateMs < STALL_THRESHOLD_MS) end();
      else this.#timer = setTimeout(end, Math.min(lateMs, ms));
    }, ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }
}
