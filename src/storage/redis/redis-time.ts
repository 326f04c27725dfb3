import { systemClock } from '../../limiter/clock.js';

/** A clock of Redis that stepped back by no more than this is waited for; MAX_STEP in take.lua. */
export const MAX_STEP_MICROS = 1_000_000;

/** What is known of the clock of one Redis, or of those of several behind a proxy. Microseconds. */
export class RedisTime {
  readonly #monotonicMicros: () => number;
  readonly #hasSingleClock: boolean;
  /** The latest time that was told, 0 before. */
  #latestMicros = 0;
  /** When it did, on the clock of deadlines. */
  #seenAtMicros = 0;

  /** `isOne`: whether there is but one clock. */
  constructor(monotonicMicros: () => number, isOne = true) {
    this.#monotonicMicros = monotonicMicros;
    this.#hasSingleClock = isOne;
  }

  /**
   * The latest time that it told, which its next one is not before; 0 where nobody knows. Of several clocks one may be
   * behind another, which is no step back: a bucket would fill up sooner each time the other is asked.
   */
  get seenMicros(): number {
    return this.#hasSingleClock ? this.#latestMicros : 0;
  }

  /**
   * Keeps the latest time seen, also when an earlier call answers with an earlier one; a larger step back is how that
   * Redis's time goes from now on, as in take.lua.
   */
  note(nowMicros: number): void {
    if (nowMicros < this.#latestMicros && this.#latestMicros - nowMicros <= MAX_STEP_MICROS) return;
    this.#latestMicros = nowMicros;
    this.#seenAtMicros = this.#monotonicMicros();
  }

  /** What the clock of this Redis shows, about. */
  readonly estimatedMicros = (): number => {
    if (this.#latestMicros === 0) return systemClock.wallMicros();
    return this.#latestMicros + this.#monotonicMicros() - this.#seenAtMicros;
  };
}
