/** The time in which a caller was denied without a break. */
export class DenialRun {
  #sinceMicros: number | undefined;

  /** Adds the next request of the caller. Returns the microseconds for which all its requests have been denied. */
  add(isDenied: boolean, startMicros: number): number {
    if (isDenied) this.#sinceMicros ??= startMicros;
    else this.#sinceMicros = undefined;
    return this.#sinceMicros === undefined ? 0 : startMicros - this.#sinceMicros;
  }
}
