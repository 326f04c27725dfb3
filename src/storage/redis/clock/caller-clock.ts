import { MAX_STEP_MICROS } from '../redis-time.js';

/**
 * Maximum drift between the clocks of two machines: twice the maximum slew of NTP, so that the estimated time is behind
 * rather than ahead between two readings.
 */
const DRIFT = 1e-3;
/**
 * Maximum allowance for drift: clocks typically drift by a twentieth of {@link DRIFT}, and hours may pass between
 * readings.
 */
const MAX_DRIFT_MICROS = 500_000;
/**
 * Number of consecutive readings with a large step back before it is followed; a single one may come from another
 * machine.
 */
const MIN_STEP_READINGS = 3;

/**
 * Estimates the clock of one Redis from occasional readings, as an offset to the monotonic clock.
 *
 * A reading is a time that was correct at some moment between request and reply. The estimate assumes the earliest
 * possible time, and uses the best recent reading minus the possible drift since. It is therefore never ahead of
 * Redis's clock, and behind it by at most a round trip and some milliseconds. Callers that estimate the time of one
 * Redis in this way differ by no more than that.
 *
 * The estimate never goes back: after a step back of up to 1 s it stays constant for as long. A larger step back is
 * followed after {@link MIN_STEP_READINGS} readings. Processes that start later know only the time after the step, and
 * buckets would be useless if callers' times stayed apart.
 */
export class CallerClock {
  readonly #monotonicMicros: () => number;
  /** Offset from the monotonic clock to Redis's clock at {@link #readAtMicros}; undefined before the first reading. */
  #offset: number | undefined;
  #readAtMicros = 0;
  #latestMicros = 0;
  #stepsSeen = 0;

  constructor(monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
  }

  /** Whether there was a reading. */
  get isSet(): boolean {
    return this.#offset !== undefined;
  }

  /** Returns the estimated time of Redis's clock, in whole microseconds. Requires {@link isSet}. */
  nowMicros(): number {
    const now = this.#monotonicMicros();
    this.#latestMicros = Math.max(this.#latestMicros, Math.floor(now + this.#offsetAt(now)));
    return this.#latestMicros;
  }

  /**
   * Adds a reading: Redis's clock showed `timeMicros` at some moment between `askedMicros` and `answeredMicros` of the
   * monotonic clock.
   */
  read(timeMicros: number, askedMicros: number, answeredMicros: number): void {
    const minOffset = timeMicros - answeredMicros;
    const maxOffset = timeMicros - askedMicros;
    const kept = this.#offsetAt(answeredMicros);
    const back = kept - maxOffset;
    if (this.isSet && back > MAX_STEP_MICROS) {
      if (++this.#stepsSeen < MIN_STEP_READINGS) return;
      this.#latestMicros = 0;
    }
    this.#stepsSeen = 0;
    this.#offset = !this.isSet || back > 0 ? minOffset : Math.max(minOffset, kept);
    this.#readAtMicros = answeredMicros;
  }

  #offsetAt(monotonicMicros: number): number {
    const drift = Math.min((monotonicMicros - this.#readAtMicros) * DRIFT, MAX_DRIFT_MICROS);
    return (this.#offset ?? 0) - drift;
  }
}
