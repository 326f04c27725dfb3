import { MAX_TIMER_MS } from '../../limiter/clock.js';

/** Timers have a resolution of 1 ms. Waits are shortened by this much, so that no result is later than its deadline. */
const SLACK_MICROS = 1000;

/** One timer for all waiting requests, set to the earliest deadline. */
export class DeadlineTimer {
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | undefined;
  #atMicros = Infinity;

  /** `onDue` is called once each time the timer fires. */
  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  /** Returns the latest deadline that is due at `nowMicros`. */
  static dueMicros(nowMicros: number): number {
    return nowMicros + SLACK_MICROS;
  }

  /**
   * Sets the timer to a deadline, unless it fires earlier anyway. For a deadline beyond the longest possible timer, it
   * fires early.
   */
  arm(deadlineMicros: number, nowMicros: number): void {
    if (deadlineMicros >= this.#atMicros) return;
    clearTimeout(this.#timer);
    this.#atMicros = deadlineMicros;
    const wait = Math.max(0, Math.floor((deadlineMicros - SLACK_MICROS - nowMicros) / 1000));
    // A busy process runs its timers before it reads replies that have arrived in the meantime.
    this.#timer = setTimeout(() => setImmediate(() => this.#fire()), Math.min(wait, MAX_TIMER_MS));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #fire(): void {
    this.#atMicros = Infinity;
    this.#onDue();
  }
}
