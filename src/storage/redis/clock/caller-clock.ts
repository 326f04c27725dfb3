import { MAX_STEP_MICROS } from '../redis-time.js';

/**
 * How much a machine's clock may gain on another's: twice what NTP slews at most, so that the time kept here runs
 * behind rather than ahead between two readings.
 */
const DRIFT = 1e-3;
/** Most that is allowed for that: clocks mostly drift by a twentieth of it, and there may be hours between readings. */
const MAX_DRIFT_MICROS = 500_000;
/** Readings in a row that must show a large step back before it is followed; one may come from another machine. */
const MIN_STEP_READINGS = 3;

/**
 * The clock of one Redis as somebody keeps it who reads it now and then: as an offset to the monotonic clock.
 *
 * A reading is a time that was right at some moment between question and answer. Of all that can be, the earliest is
 * taken, the best one lately and less by what may have drifted since: so the time is never ahead of that Redis's own,
 * and behind it by no more than a round trip and some milliseconds. Callers that keep the time of one Redis in this way
 * are apart from each other by no more than that.
 *
 * It never goes back: where that Redis's clock stepped back by up to a second, the time stands still for as long. A
 * larger step back is followed once it was seen {@link MIN_STEP_READINGS} times, because processes that start later
 * know only the time after it, and buckets of callers whose times stay apart are of no use.
 */
export class CallerClock {
  readonly #monotonicMicros: () => number;
  /** Of the monotonic clock to Redis's at {@link #readAtMicros}; undefined before the first reading. */
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

  /** What that Redis's clock shows, in whole microseconds. Not before {@link isSet}. */
  nowMicros(): number {
    const now = this.#monotonicMicros();
    this.#latestMicros = Math.max(this.#latestMicros, Math.floor(now + this.#offsetAt(now)));
    return this.#latestMicros;
  }

  /**
   * That Redis's clock showed `timeMicros` at some moment between `askedMicros` and `answeredMicros` of the monotonic
   * one.
   */
  read(timeMicros: number, askedMicros: number, answeredMicros: number): void {
    const least = timeMicros - answeredMicros;
    const most = timeMicros - askedMicros;
    const kept = this.#offsetAt(answeredMicros);
    const back = kept - most;
    if (this.isSet && back > MAX_STEP_MICROS) {
      if (++this.#stepsSeen < MIN_STEP_READINGS) return;
      this.#latestMicros = 0;
    }
    this.#stepsSeen = 0;
    this.#offset = !this.isSet || back > 0 ? least : Math.max(least, kept);
    this.#readAtMicros = answeredMicros;
  }

  #offsetAt(monotonicMicros: number): number {
    const drift = Math.min((monotonicMicros - this.#readAtMicros) * DRIFT, MAX_DRIFT_MICROS);
    return (this.#offset ?? 0) - drift;
  }
}
