import type { Clock } from '../../../src/limiter/clock.js';

/** A clock that advances only when a test advances it. Both times start at round, recognisable values. */
export class FakeClock implements Clock {
  monotonic = 1_000_000_000;
  wall = 1_700_000_000_000_000;

  monotonicMicros(): number {
    return this.monotonic;
  }

  wallMicros(): number {
    return this.wall;
  }

  /** Returns a clock whose wall time and monotonic time are equal, as in Redis. */
  static ofRedis(): FakeClock {
    const clock = new FakeClock();
    clock.monotonic = clock.wall;
    return clock;
  }

  /** Moves both clocks forward. */
  advance(micros: number): void {
    this.monotonic += micros;
    this.wall += micros;
  }

  /** Steps only the wall clock, forward or back, as NTP or an operator does. */
  stepWall(micros: number): void {
    this.wall += micros;
  }
}
