import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { SilenceWatch } from '../../../../src/storage/redis/silence-watch.js';
import type { TakeBatch } from '../../../../src/storage/redis/take-batch.js';

const MS = 1000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test('Redis is silent if it has not replied to a call for the maximum', () => {
  const start = performance.now();
  const now = (): number => (performance.now() - start) * MS;
  let oldest: TakeBatch | undefined;
  const silences: number[] = [];
  const watch = new SilenceWatch({
    maxSilenceMicros: 400 * MS,
    monotonicMicros: now,
    oldest: () => oldest,
    onSilence: (micros) => silences.push(micros / MS),
  });
  jest.advanceTimersByTime(1000);
  expect(watch.isResponsive()).toBe(true);
  oldest = { sentMicros: now() } as TakeBatch;
  watch.begin();
  jest.advanceTimersByTime(300);
  expect(watch.isResponsive()).toBe(false);
  // A reply to another call.
  watch.answered();
  expect(watch.isResponsive()).toBe(true);
  jest.advanceTimersByTime(399);
  expect(silences).toEqual([]);
  jest.advanceTimersByTime(10);
  expect(silences[0]).toBeGreaterThanOrEqual(400);
});
