import { withTimeout } from './turns.js';

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

/** Waits until no work is in progress, for example before closing. */
export class IdleWait {
  readonly #isIdle: () => boolean;
  #end: (() => void) | undefined;

  constructor(isIdle: () => boolean) {
    this.#isIdle = isIdle;
  }

  /** Checks whether all work has ended. Call it whenever some work ends. */
  check(): void {
    if (this.#end !== undefined && this.#isIdle()) this.#end();
  }

  /** Resolves once no work is in progress, or after `ms` milliseconds. Call it only once. */
  async wait(ms: number): Promise<void> {
    if (this.#isIdle()) return;
    const idle = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    await withTimeout(ms, idle, () => {});
  }
}

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

/** Minimum interval between two log messages about the same event, in milliseconds. */
const LOG_INTERVAL_MS = 10_000;

/**
 * Returns a function that tells whether to log an event that may happen very often: it returns `true` at most once in
 * {@link LOG_INTERVAL_MS}.
 */
export function throttledLog(nowMs: () => number = () => performance.now()): () => boolean {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = nowMs();
    if (now < quietUntilMs) return false;
    quietUntilMs = now + LOG_INTERVAL_MS;
    return true;
  };
}

export interface BackOffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Minimum pause in milliseconds; default 0. */
  readonly minMs?: number;
  /** Random jitter as a fraction of the pause, 0 to 1; default 0. */
  readonly jitterFactor?: number;
  /** A number from 0 to below 1. Default: Math.random. */
  readonly random?: () => number;
}

/** Computes exponentially growing pauses between attempts: each is twice the previous one, up to `maxMs`. */
export class BackOff {
  readonly #options: BackOffOptions;
  /** Number of pauses since the last {@link reset} that have increased the next one. */
  #pauses = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Milliseconds to wait before the next attempt. */
  next(): number {
    const { initialMs, maxMs, minMs = 0, jitterFactor = 0, random = Math.random } = this.#options;
    const middle = Math.min(Math.max(initialMs, minMs) * 2 ** this.#pauses, maxMs);
    if (middle < maxMs) this.#pauses++;
    if (jitterFactor === 0) return Math.max(middle, minMs);
    const low = middle * (1 - jitterFactor);
    const high = Math.min(middle * (1 + jitterFactor), maxMs);
    return Math.max(Math.round(low + random() * (high - low)), minMs);
  }

  /** Resets the pauses after a success: the next pause is `initialMs` again. */
  reset(): void {
    this.#pauses = 0;
  }
}
