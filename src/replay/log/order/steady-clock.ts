/** Rows in succession that are behind the clock before the clock is taken to have been set back. */
const ROWS_BEHIND = 10;
/** A clock that is set back by less than this is waited for, because the error is small. */
const STEP_MICROS = 1_000_000;

/**
 * Turns the times of a log into a time that never goes back. A single late request gets the time of its predecessor. If
 * many requests in succession are early, the clock of the log was set back. Its new time continues from the old time.
 */
export class SteadyClock {
  /** Number of times that the clock was set back. */
  steps = 0;
  #now = Number.NEGATIVE_INFINITY;
  /** Added to times of the log. */
  #shift = 0;
  #behind = 0;

  /** Returns the time of the next request, in microseconds. */
  read(micros: number): number {
    const time = micros + this.#shift;
    if (time >= this.#now) {
      this.#behind = 0;
      this.#now = time;
    } else if (this.#now - time >= STEP_MICROS && ++this.#behind >= ROWS_BEHIND) {
      this.#behind = 0;
      this.#shift += this.#now - time;
      this.steps++;
    }
    return this.#now;
  }
}
