import { timerMs } from '../../limiter/clock.js';
import type { TakeBatch } from './take-batch.js';

/** Time since the latest reply within which Redis counts as busy but responsive, in microseconds. */
export const RESPONSIVE_MICROS = 250_000;
/** Settings of {@link SilenceWatch}. */
export interface SilenceWatchOptions {
  /** Maximum silence of Redis: REDIS_TIMEOUT, in microseconds. */
  readonly maxSilenceMicros: number;
  /** Returns the time of the clock of deadlines. */
  readonly monotonicMicros: () => number;
  /**
   * Returns the call that has waited longest for its reply. Returns undefined without a waiting call, or if the
   * connection is known to be down.
   */
  readonly oldest: () => TakeBatch | undefined;
  /** Called after `micros` without any reply. */
  readonly onSilence: (micros: number) => void;
}

/**
 * Detects a hung Redis, with one timer while calls are in flight. Redis counts as hung if a call was sent REDIS_TIMEOUT
 * ago and Redis has not replied to any call since. Deadlines of callers prove nothing about Redis, because they may be
 * shorter than the round-trip time.
 */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  /** When Redis last replied to a call, on the clock of deadlines. */
  #answeredMicros = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
  }

  /** Records any reply of Redis. */
  answered(): void {
    this.#answeredMicros = this.#options.monotonicMicros();
  }

  /** Records that a call is in flight. */
  begin(): void {
    this.#scheduleCheck(this.#options.maxSilenceMicros);
  }

  /** Returns whether Redis has replied recently. A Redis without a waiting call counts as responsive. */
  isResponsive(): boolean {
    const oldest = this.#options.oldest();
    return oldest === undefined || this.#silentMicros(oldest) < RESPONSIVE_MICROS;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #silentMicros(oldest: TakeBatch): number {
    return this.#options.monotonicMicros() - Math.max(oldest.sentMicros, this.#answeredMicros);
  }

  #scheduleCheck(micros: number): void {
    this.#timer ??= setTimeout(
      // A busy process runs its timers before it reads replies that have arrived in the meantime.
      () => setImmediate(() => this.#check()),
      Math.ceil(timerMs(micros)),
    );
  }

  #check(): void {
    this.#timer = undefined;
    const { oldest: findOldest, maxSilenceMicros, onSilence } = this.#options;
    const oldest = findOldest();
    if (oldest === undefined) return;
    const silentMicros = this.#silentMicros(oldest);
    if (silentMicros >= maxSilenceMicros) onSilence(silentMicros);
    else this.#scheduleCheck(maxSilenceMicros - silentMicros);
  }
}
