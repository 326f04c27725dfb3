import { afterEach, expect, jest, test } from '@jest/globals';
import { exactTimeText, systemClock } from '../../../src/limiter/clock.js';

const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;
const start = Math.floor(performance.timeOrigin * 1000);
/** A full second after the start, on the wall clock. */
const fullSecond = Math.ceil(start / SECOND) * SECOND + 5 * SECOND;

afterEach(() => {
  jest.restoreAllMocks();
});

/** Sets both clocks of the system to times in microseconds since 1970. */
function set(monotonic: number, wall: number): void {
  jest.spyOn(performance, 'now').mockReturnValue((monotonic - start + 0.5) / 1000);
  jest.spyOn(Date, 'now').mockReturnValue(wall / 1000);
}

test('the exact wall clock tells the time of the latest monotonic reading', () => {
  set(fullSecond + 1_567, fullSecond + 1_000);
  systemClock.monotonicMicros();
  set(fullSecond + 67_000, fullSecond + 67_000);
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond + 1_567);
});

test('the exact wall clock shows the second in which a window was decided', () => {
  set(fullSecond - 300, fullSecond);
  systemClock.monotonicMicros();
  systemClock.wallMicros();
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond);
  set(fullSecond + 300, fullSecond - 1_000);
  systemClock.monotonicMicros();
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond + 300);
  systemClock.wallMicros();
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond - 1);
});

test('the exact wall clock follows steps of the wall clock, and keeps its microseconds', () => {
  set(fullSecond, fullSecond + HOUR);
  systemClock.monotonicMicros();
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond + HOUR);
  set(fullSecond + 123, fullSecond + HOUR);
  systemClock.monotonicMicros();
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond + HOUR + 123);
  set(fullSecond + 456, fullSecond);
  systemClock.monotonicMicros();
  expect(systemClock.exactWallMicros?.()).toBe(fullSecond);
});

test('a time has six digits after the point', () => {
  expect(exactTimeText(1_700_000_000_000_001)).toBe('2023-11-14T22:13:20.000001Z');
  expect(exactTimeText(1_700_000_000_123_456)).toBe('2023-11-14T22:13:20.123456Z');
});
