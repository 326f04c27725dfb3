import { MAX_TIMER_MS } from '../../limiter/clock.js';
import { SYSTEM_TIMERS, type TimerSource } from '../../runtime/timer-source.js';

/** Timers have a resolution of 1 ms. Waits are shortened by this much, so that no result is later than its deadline. */
const SLACK_MICROS = 1000;

/** One timer for all waiting requests, set to the earliest deadline. */
export class DeadlineTimer {
  readonly #onDue: () => void;
  readonly #timers: Omit<TimerSource, 'nowMs'>;
  #timer: unknown;
  #atMicros = Infinity;

  /** `onDue` is called once each time the timer fires. */
  constructor(onDue: () => void, timers: Omit<TimerSource, 'nowMs'> = SYSTEM_TIMERS) {
    this.#onDue = onDue;
    this.#timers = timers;
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
    this.#timers.clear(this.#timer);
    this.#atMicros = deadlineMicros;
    const wait = Math.max(1, Math.floor((deadlineMicros - SLACK_MICROS - nowMicros) / 1000));
    // A busy process runs its timers before it reads replies that have arrived in the meantime. One turn is the limit:
    // the transport ends calls one turn later.
    const fire = (): void => this.#timers.nextTurn(() => this.#fire());
    this.#timer = this.#timers.set(fire, Math.min(wait, MAX_TIMER_MS));
  }

  stop(): void {
    this.#timers.clear(this.#timer);
  }

  #fire(): void {
    this.#atMicros = Infinity;
    this.#onDue();
  }
}
