import { expect, test } from '@jest/globals';
import { HttpReadScheduler, type Reader } from '../../../src/http/http-read-scheduler.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('only a few busy connections are read in a turn', async () => {
  const reads = new HttpReadScheduler(() => 0);
  const log: number[] = [];
  const readers: Reader[] = Array.from({ length: 20 }, (_, n) => ({ resumeReading: () => void log.push(n) }));
  for (const reader of readers) reads.wait(reader);
  reads.cancel(readers[3] as Reader);
  await turn();
  expect(log).toEqual([0, 1, 2, 4, 5, 6, 7, 8]);
});

test('the parsing time in a turn is bounded for all connections together', async () => {
  let now = 0;
  const reads = new HttpReadScheduler(() => now);
  expect(reads.hasTime()).toBe(true);
  now = 0.9;
  expect(reads.hasTime()).toBe(true);
  now = 1;
  expect(reads.hasTime()).toBe(false);
  const log: number[] = [];
  const readers: Reader[] = Array.from({ length: 4 }, (_, n) => ({
    resumeReading(): void {
      log.push(n);
      now += 0.6;
    },
  }));
  for (const reader of readers) reads.wait(reader);
  await turn();
  expect(log).toEqual([0, 1]);
  // The turn's time is used up, but other connections are read in the same turn of the event loop.
  expect(reads.hasTime()).toBe(false);
  await turn();
  expect(log).toEqual([0, 1, 2, 3]);
  await turn();
  expect(reads.hasTime()).toBe(true);
});
