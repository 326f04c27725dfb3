/**
 * The two times a decision needs, as whole microseconds. Injected everywhere, so that tests decide what time it is.
 *
 * The monotonic clock never steps: token buckets in memory, deadlines and measured durations use it. The wall clock is
 * what clients see: header epochs, fixed windows and phase schedules use it.
 */
export interface Clock {
  /** Microseconds since an arbitrary start; never goes back. */
  monotonicMicros(): number;
  /** Microseconds since 1970-01-01T00:00:00Z; may step either way. */
  wallMicros(): number;
}

/** Longest delay of a Node timer, 24.8 days; of a longer one Node would make 1 ms. Milliseconds. */
export const MAX_TIMER_MS = 2_147_483_647;

/** Delay of a Node timer for a duration of so many microseconds: milliseconds, at most {@link MAX_TIMER_MS}. */
export function timerMs(micros: number): number {
  return Math.min(micros / 1000, MAX_TIMER_MS);
}

/** The machine's clocks. */
export const systemClock: Clock = {
  monotonicMicros: () => Math.floor(performance.now() * 1000),
  // performance.timeOrigin would not follow a step of the wall clock, Date.now() does.
  wallMicros: () => Date.now() * 1000,
};
