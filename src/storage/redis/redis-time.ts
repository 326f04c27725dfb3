import { systemClock } from '../../limiter/clock.js';

/** A clock of Redis that stepped back by no more than this is waited for; MAX_STEP in take.lua. */
const MAX_STEP_MICROS = 1_000_000;

/** What is known of the clock of one Redis. Microseconds. */
export class RedisTime {
  /** The latest time that it told, 0 before. */
  seenMicros = 0;
  readonly #monotonicMicros: () => number;
  /** When it did, on the clock of deadlines. */
  #seenAtMicros = 0;

  constructor(monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
  }

  /**
   * Keeps the latest time seen, also when an earlier call answers with an earlier one; a larger step back is how that
   * Redis's time goes from now on, as in take.lua.
   */
  note(nowMicros: number): void {
    if (nowMicros < this.seenMicros && this.seenMicros - nowMicros <= MAX_STEP_MICROS) return;
    this.seenMicros = nowMicros;
    this.#seenAtMicros = this.#monotonicMicros();
  }

  /** What the clock of this Redis shows, about. */
  readonly aboutMicros = (): number => {
    if (this.seenMicros === 0) return systemClock.wallMicros();
    return this.seenMicros + this.#monotonicMicros() - this.#seenAtMicros;
  };
}
