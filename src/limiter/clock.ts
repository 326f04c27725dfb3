/**
 * The two clocks that decisions need, in whole microseconds. The clock is injected everywhere so that tests can control
 * time.
 *
 * The monotonic clock never steps: token buckets in memory, deadlines and measured durations use it. The wall clock is
 * the time that clients see: header epochs, fixed windows and phase schedules use it.
 */
export interface Clock {
  /** Microseconds since an arbitrary start. Never decreases. */
  monotonicMicros(): number;
  /** Microseconds since 1970-01-01T00:00:00Z. May step in either direction. */
  wallMicros(): number;
  /**
   * Returns the time of the latest call of {@link monotonicMicros} on the wall clock, with microseconds: the time at
   * which buckets in memory decided the latest request. If {@link wallMicros} was called since, as for windows, the
   * result lies in the same second, so it is in the same windows. Absent if {@link wallMicros} has microseconds.
   */
  exactWallMicros?(): number;
}

/** Maximum delay of a Node.js timer, in milliseconds (24.8 days). Node.js replaces a longer delay with 1 ms. */
export const MAX_TIMER_MS = 2_147_483_647;

/** Converts microseconds to the delay of a Node.js timer, in milliseconds, at most {@link MAX_TIMER_MS}. */
export function timerMs(micros: number): number {
  return Math.min(micros / 1000, MAX_TIMER_MS);
}

/** Formats a time of a wall clock as in RFC 3339, in UTC, with microseconds. */
export function exactTimeText(wallMicros: number): string {
  const millis = Math.floor(wallMicros / 1000);
  const micros = Math.floor(wallMicros) - millis * 1000;
  return `${new Date(millis).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`;
}

/**
 * With a greater difference between the wall clock and the time since the start, the wall clock was stepped. NTP steps
 * a clock by at least 128 ms.
 */
const MAX_CLOCK_DIFFERENCE_MICROS = 100_000;

let latestMicros = 0;
/** The first reading of the wall clock after the one in {@link latestMicros}; 0 without any. */
let wallSinceMicros = 0;
/** The wall clock at 0 on the monotonic clock. */
let startMicros = Math.floor(performance.timeOrigin * 1000);

/** The clocks of the operating system. */
export const systemClock: Clock = {
  monotonicMicros: () => {
    latestMicros = Math.floor(performance.now() * 1000);
    wallSinceMicros = 0;
    return latestMicros;
  },
  // Date.now() follows steps of the wall clock; performance.timeOrigin does not.
  wallMicros: () => {
    const wall = Date.now() * 1000;
    if (wallSinceMicros === 0) wallSinceMicros = wall;
    return wall;
  },
  exactWallMicros: () => {
    const sinceStart = Math.floor(performance.now() * 1000);
    const wall = Date.now() * 1000;
    if (Math.abs(startMicros + sinceStart - wall) >= MAX_CLOCK_DIFFERENCE_MICROS)
      startMicros = wall - sinceStart;
    const exact = startMicros + latestMicros;
    if (wallSinceMicros === 0) return exact;
    const second = wallSinceMicros - (wallSinceMicros % 1_000_000);
    return Math.min(Math.max(exact, second), second + 999_999);
  },
};
