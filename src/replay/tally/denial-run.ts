/** A caller, and the time in which it was denied without a break. */
export interface DenialRun {
  /** Start of the first of its latest requests that were all denied; undefined if the latest one was allowed. */
  deniedSinceMicros: number | undefined;
}

/** Adds the next request of a caller. Returns the microseconds for which all its requests have been denied. */
export function continueRun(run: DenialRun, isDenied: boolean, startMicros: number): number {
  if (!isDenied) {
    run.deniedSinceMicros = undefined;
    return 0;
  }
  run.deniedSinceMicros ??= startMicros;
  return startMicros - run.deniedSinceMicros;
}
