import type { Clock } from '../../limiter/clock.js';

/** The clock of a replay: the time of the request that is decided. Both clocks are equal, and never step back. */
export class ReplayClock implements Clock {
  #micros = 0;

  /** Moves the clock to `micros`. An earlier time leaves it unchanged. */
  advance(micros: number): void {
    if (micros > this.#micros) this.#micros = micros;
  }

  monotonicMicros(): number {
    return this.#micros;
  }

  wallMicros(): number {
    return this.#micros;
  }
}
