import { timerMs } from '../../../limiter/clock.js';
import type { TakeBatch } from '../take-batch.js';
import { RESPONSIVE_MICROS } from './redis-load.js';

/**
 * What one item may take Redis on top of its patience: a request of thousands of descriptors is one call, and no sign
 * of a hung Redis.
 */
const SILENCE_MICROS_PER_ITEM = 50;

/** Settings of {@link SilenceWatch}. */
export interface SilenceWatchOptions {
  /** How long Redis may be silent: REDIS_TIMEOUT, in microseconds. */
  readonly maxSilenceMicros: number;
  /** The clock of deadlines. */
  readonly monotonicMicros: () => number;
  /** The call that waits longest for its answer; undefined when none does, or the connection is known to be down. */
  readonly oldest: () => TakeBatch | undefined;
  /** What Redis has done for other processes since it was given a call, microseconds. */
  readonly otherWorkSince: (batch: TakeBatch, nowMicros: number) => number;
  /** Nothing was answered for so many microseconds. */
  readonly onSilence: (micros: number) => void;
}

/**
 * Looks whether Redis answers at all, with one timer while calls are under way. Redis counts as hung when something was
 * asked REDIS_TIMEOUT ago and nothing at all was answered since: deadlines of callers say nothing about Redis, they may
 * be shorter than the way to it.
 */
export class SilenceWatch {
  /** When Redis last answered a call, on the clock of deadlines. */
  answeredMicros = 0;
  readonly #options: SilenceWatchOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
  }

  /** Redis answered, whatever it was. */
  answered(): void {
    this.answeredMicros = this.#options.monotonicMicros();
  }

  /** A call is under way. */
  begin(): void {
    this.#checkIn(this.#options.maxSilenceMicros);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #checkIn(micros: number): void {
    this.#timer ??= setTimeout(
      // A busy process sees its timers before the answers that have come meanwhile.
      () => setImmediate(() => this.#check()),
      Math.ceil(timerMs(micros)),
    );
  }

  #check(): void {
    this.#timer = undefined;
    const {
      oldest: findOldest,
      monotonicMicros,
      maxSilenceMicros: patienceMicros,
      otherWorkSince: othersSince,
      onSilence,
    } = this.#options;
    const oldest = findOldest();
    if (oldest === undefined) return;
    const now = monotonicMicros();
    const silentMicros = now - Math.max(oldest.sentMicros, this.answeredMicros);
    // They tell what they expect, of a hung Redis, too.
    const others = Math.min(RESPONSIVE_MICROS, othersSince(oldest, now));
    const patience = patienceMicros + oldest.itemCount * SILENCE_MICROS_PER_ITEM + others;
    if (silentMicros >= patience) onSilence(silentMicros);
    else this.#checkIn(patience - silentMicros);
  }
}
