import type { Clock } from '../../../src/limiter/clock.js';

/** A clock that moves only when told. Both times start at whole, recognisable values. */
export class FakeClock implements Clock {
  monotonic = 1_000_000_000;
  wall = 1_700_000_000_000_000;

  monotonicMicros(): number {
    return this.monotonic;
  }

  wallMicros(): number {
    return this.wall;
  }

  /** One whose times are one, as Redis has it. */
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

  /** Steps the wall clock only, either way, as NTP or an operator does. */
  stepWall(micros: number): void {
    this.wall += micros;
  }
}
