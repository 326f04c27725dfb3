import { expect, test } from '@jest/globals';
import { RedisTime } from '../../../../src/storage/redis/take-script-sender.js';

const SECOND = 1_000_000;

test('a small step back is ignored, a larger one is followed, and the highest time stays known', () => {
  const time = new RedisTime(() => 0);
  expect([time.seenMicros, time.highestMicros]).toEqual([0, 0]);
  for (const [told, seen] of [
    [100, 100],
    [99, 100],
    [90, 90],
    [95, 95],
    [101, 101],
  ] as const) {
    time.note(told * SECOND);
    expect([time.seenMicros, time.highestMicros]).toEqual([seen * SECOND, Math.max(seen, 100) * SECOND]);
  }
});

test('servers of a cluster share the highest time, so that a slower clock counts as set back', () => {
  const highest = { micros: 0 };
  const [first, second] = [new RedisTime(() => 0, highest), new RedisTime(() => 0, highest)];
  first.note(100 * SECOND);
  second.note(40 * SECOND);
  expect([second.seenMicros, second.highestMicros]).toEqual([40 * SECOND, 100 * SECOND]);
});
