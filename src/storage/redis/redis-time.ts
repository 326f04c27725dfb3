import { systemClock } from '../../limiter/clock.js';

/** Maximum backward step of Redis's clock that is waited out; MAX_STEP in take.lua. */
const MAX_STEP_MICROS = 1_000_000;

/** The latest time that the clock of a Redis, or of any of its servers, has ever shown, in microseconds. */
export interface HighestTime {
  micros: number;
}

/** Tracks the clock of one Redis, in microseconds. */
export class RedisTime {
  readonly #monotonicMicros: () => number;
  /** The latest known time; 0 if unknown. */
  #latestMicros = 0;
  readonly #highest: HighestTime;
  /** When that time was received, on the clock of deadlines. */
  #seenAtMicros = 0;

  /** `highest`: shared by the servers of a cluster, because a replica that takes over may have a slower clock. */
  constructor(monotonicMicros: () => number, highest: HighestTime = { micros: 0 }) {
    this.#monotonicMicros = monotonicMicros;
    this.#highest = highest;
  }

  /** The latest known time, or 0 if unknown. Redis's next time is not earlier. */
  get seenMicros(): number {
    return this.#latestMicros;
  }

  /** The latest time that has ever been known, also before the clock was set back; 0 if unknown. */
  get highestMicros(): number {
    return this.#highest.micros;
  }

  /**
   * Records a time of Redis. A small step back is ignored, because replies may arrive out of order. After a larger
   * step, the new time applies, as in take.lua.
   */
  note(nowMicros: number): void {
    if (nowMicros < this.#latestMicros && this.#latestMicros - nowMicros <= MAX_STEP_MICROS) return;
    this.#latestMicros = nowMicros;
    this.#highest.micros = Math.max(this.#highest.micros, nowMicros);
    this.#seenAtMicros = this.#monotonicMicros();
  }

  /** Returns the estimated current time of Redis's clock. */
  readonly estimatedMicros = (): number => {
    if (this.#latestMicros === 0) return systemClock.wallMicros();
    return this.#latestMicros + this.#monotonicMicros() - this.#seenAtMicros;
  };
}
