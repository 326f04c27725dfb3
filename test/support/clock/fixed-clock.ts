/*
 * Preloaded into weir and its commands with NODE_OPTIONS=--require. It fixes the clocks that decisions use, so that the
 * times in an answer are the same in every run. Clocks that measure durations keep running.
 */
import { systemClock } from '../../../src/limiter/clock.js';
import { HitSampler } from '../../../src/telemetry/top/hit-sampler.js';

/** A time in the middle of a minute, an hour, a day, a month and a year. */
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
  // The wall clock is exact.
  exactWallMicros: undefined,
});
// Sampling adapts to a rate, and the rate is infinite under a fixed clock.
HitSampler.prototype.adapt = () => {};
