import { systemClock } from '../../limiter/clock.js';

/** Maximum backward step of Redis's clock that is waited out; MAX_STEP in take.lua. */
export const MAX_STEP_MICROS = 1_000_000;

/** Tracks the clock of one Redis, or of several behind a proxy, in microseconds. */
export class RedisTime {
  readonly #monotonicMicros: () => number;
  readonly #hasSingleClock: boolean;
  /** The latest known time; 0 if unknown. */
  #latestMicros = 0;
  /** When it was received, on the clock of deadlines. */
  #seenAtMicros = 0;

  /** `hasSingleClock`: whether all replies come from one clock. */
  constructor(monotonicMicros: () => number, isOne = true) {
    this.#monotonicMicros = monotonicMicros;
    this.#hasSingleClock = isOne;
  }

  /**
   * The latest known time, which the next time does not precede; 0 if unknown. With several clocks, one may be behind
   * another, which is no step back: otherwise a bucket would refill faster with each switch.
   */
  get seenMicros(): number {
    return this.#hasSingleClock ? this.#latestMicros : 0;
  }

  /**
   * Records a time of Redis. Small steps back are ignored, since replies may arrive out of order. After a larger one,
   * the new time applies, as in take.lua.
   */
  note(nowMicros: number): void {
    if (nowMicros < this.#latestMicros && this.#latestMicros - nowMicros <= MAX_STEP_MICROS) return;
    this.#latestMicros = nowMicros;
    this.#seenAtMicros = this.#monotonicMicros();
  }

  /** Returns the estimated current time of Redis's clock. */
  readonly estimatedMicros = (): number => {
    if (this.#latestMicros === 0) return systemClock.wallMicros();
    return this.#latestMicros + this.#monotonicMicros() - this.#seenAtMicros;
  };
}
