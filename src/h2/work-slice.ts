/** Amount of work between two checks of the clock: three requests, or a few frames without requests. */
const WORK_PER_CLOCK_CHECK = 64;
/** Maximum number of clock checks in one slice, which corresponds to about five hundred requests. */
const MAX_CLOCK_CHECKS = 256;

/**
 * Work of a complete request, in the unit of {@link WorkSlice.remaining}. A frame that only has to be parsed counts 1.
 */
export const REQUEST_WORK = 12;
/** Work of a request head whose body follows. */
export const HEAD_WORK = 6;

/**
 * Limits how long a connection is read before other connections get their turn. Processed frames are counted, and the
 * clock is checked only once for several frames. One object serves all connections of a process, because only one of
 * them is read at a time.
 */
export class WorkSlice {
  /**
   * Work that remains until the next check of the clock. Subtract the work done, and call {@link isOver} once nothing
   * remains.
   */
  remaining = WORK_PER_CLOCK_CHECK;
  readonly #nowMs: () => number;
  #endMs = Number.POSITIVE_INFINITY;
  #clockChecksLeft = Number.POSITIVE_INFINITY;

  /** `nowMs`: clock in milliseconds that never goes back. Before the first {@link begin}, the slice has no end. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Starts a slice of `spanMs` milliseconds at `nowMs`. */
  begin(nowMs: number, spanMs: number): void {
    this.remaining = WORK_PER_CLOCK_CHECK;
    this.#clockChecksLeft = MAX_CLOCK_CHECKS;
    this.#endMs = nowMs + spanMs;
  }

  /** Checks the clock. Returns whether to stop and continue in the next turn. */
  isOver(): boolean {
    this.remaining = WORK_PER_CLOCK_CHECK;
    this.#clockChecksLeft--;
    return this.#clockChecksLeft <= 0 || this.#nowMs() >= this.#endMs;
  }
}
