/** Work after which the clock is asked: three requests, or a handful of frames that bring none. */
const WORK_PER_CLOCK_CHECK = 64;
/** Looks at the clock in one unit, whatever it says: some five hundred requests. */
const MAX_CLOCK_CHECKS = 256;

/**
 * Work of a request that is complete, in the measure of {@link WorkSlice.remaining}: a frame that is merely looked at counts
 * 1.
 */
export const REQUEST_WORK = 12;
/** Work of a head whose request goes on. */
export const HEAD_WORK = 6;

/**
 * How long a connection reads before the others have their turn: frames are counted as they are taken, and every few of
 * them the clock is asked. One object serves all connections of a process, as only one of them reads at a time.
 */
export class WorkSlice {
  /**
   * Work until the next look at the clock. Whoever works takes from it, and asks {@link isOver} once nothing is left.
   */
  remaining = WORK_PER_CLOCK_CHECK;
  readonly #nowMs: () => number;
  #endMs = Number.POSITIVE_INFINITY;
  #clockChecksLeft = Number.POSITIVE_INFINITY;

  /** `nowMs`: milliseconds on a clock that never goes back. Before the first {@link begin} the unit has no end. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** A connection begins to read at `nowMs`, for `spanMs` milliseconds. */
  begin(nowMs: number, spanMs: number): void {
    this.remaining = WORK_PER_CLOCK_CHECK;
    this.#clockChecksLeft = MAX_CLOCK_CHECKS;
    this.#endMs = nowMs + spanMs;
  }

  /** Whether to stop here and go on in the next turn. */
  isOver(): boolean {
    this.remaining = WORK_PER_CLOCK_CHECK;
    this.#clockChecksLeft--;
    return this.#clockChecksLeft <= 0 || this.#nowMs() >= this.#endMs;
  }
}
