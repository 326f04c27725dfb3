/*
 * Put before weir and its commands with NODE_OPTIONS=--require: the clocks that decide stand still, so that every digit
 * of an answer that tells a time is the same in each run. What measures how long something takes goes on.
 */
import { systemClock } from '../../../src/limiter/clock.js';
import { HitSampler } from '../../../src/telemetry/top/hit-sampler.js';

/** Within a minute, an hour, a day, a month, and a year. */
const NOW_MS = Date.parse('2026-11-21T12:34:20Z');
const MONOTONIC_MICROS = 1_000_000_000;

class FixedDate extends Date {
  constructor(...date: readonly unknown[]) {
    super(...((date.length === 0 ? [NOW_MS] : date) as [number]));
  }
  static override now(): number {
    return NOW_MS;
  }
}

globalThis.Date = FixedDate as DateConstructor;
Object.assign(systemClock, {
  monotonicMicros: () => MONOTONIC_MICROS,
  wallMicros: () => NOW_MS * 1000,
});
// Sampling adapts to a rate, which is infinite while the clock stands still.
HitSampler.prototype.adapt = () => {};
