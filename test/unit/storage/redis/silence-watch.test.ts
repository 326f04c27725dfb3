import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { SilenceWatch } from '../../../../src/storage/redis/load/silence-watch.js';
import type { TakeBatch } from '../../../../src/storage/redis/take-batch.js';

const MS = 1000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/**
 * Watches one call of one item, sent now, with a maximum silence of 20 ms. Returns when Redis counts as silent, in
 * milliseconds.
 */
function silentAfter(othersSince: (nowMicros: number) => number): () => number | undefined {
  const start = performance.now();
  let silent: number | undefined;
  const now = (): number => (performance.now() - start) * MS;
  const watch = new SilenceWatch({
    maxSilenceMicros: 20 * MS,
    monotonicMicros: now,
    oldest: () => (silent === undefined ? ({ sentMicros: 0, itemCount: 1 } as TakeBatch) : undefined),
    otherWorkSince: (_batch, nowMicros) => othersSince(nowMicros),
    onSilence: (micros) => {
      silent = micros / MS;
    },
  });
  watch.begin();
  return () => silent;
}

test('Redis is silent if it has not replied for the maximum, plus the time of its work for other processes', () => {
  const withoutOtherWork = silentAfter(() => 0);
  const besides = silentAfter(() => 100 * MS);
  jest.advanceTimersByTime(30);
  expect(withoutOtherWork()).toBeGreaterThanOrEqual(20);
  expect(besides()).toBeUndefined();
  jest.advanceTimersByTime(120);
  expect(besides()).toBeGreaterThanOrEqual(120);
});

test('growing reports of other processes do not hide a hung Redis', () => {
  const silent = silentAfter((nowMicros) => 2 * nowMicros);
  jest.advanceTimersByTime(300);
  expect(silent()).toBeGreaterThanOrEqual(270);
});
