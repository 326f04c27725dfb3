import { MAX_TIMER_MS } from '../../../limiter/clock.js';

/** Timers fire on whole milliseconds: waits are cut this much short, so that no answer is later than its deadline. */
const SLACK_MICROS = 1000;

/** One timer for all that wait, set to the soonest deadline. */
export class DeadlineTimer {
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | undefined;
  #atMicros = Infinity;

  /** `onDue` is called once for each time that it is armed. */
  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  /** What is due at `nowMicros`: deadlines until then. */
  static dueMicros(nowMicros: number): number {
    return nowMicros + SLACK_MICROS;
  }

  /** Fires at a deadline, unless it does sooner anyway. One beyond the longest timer is looked at again then. */
  arm(deadlineMicros: number, nowMicros: number): void {
    if (deadlineMicros >= this.#atMicros) return;
    clearTimeout(this.#timer);
    this.#atMicros = deadlineMicros;
    const wait = Math.max(0, Math.floor((deadlineMicros - SLACK_MICROS - nowMicros) / 1000));
    // A busy process sees its timers before the answers that have come meanwhile.
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
