/** A timer that fires so much too late shows that this process was held up. Milliseconds. */
const STALL_THRESHOLD_MS = 50;

/**
 * Tells when something from outside has taken too long. A process that was held up, by other processes or by work of
 * its own, sees its timers before what has come meanwhile: that is read first, and the time in which nothing could be
 * read is given once more.
 */
export class StallTolerantTimer {
  #timer: NodeJS.Timeout;
  #immediate: NodeJS.Immediate | undefined;

  /** `onOver` is called once after `ms` milliseconds, unless the timer is stopped before. */
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
