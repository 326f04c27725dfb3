import { expect, test } from '@jest/globals';
import { RedisKeys } from '../../../../src/storage/redis/redis-key.js';
import { ScarceRoom } from '../../../../src/storage/redis/scarce-room.js';
import { TakeBatch } from '../../../../src/storage/redis/take-batch.js';

const newBatch = (): TakeBatch => new TakeBatch(new RedisKeys(''), true, () => 0, 0);

test('a connection has no more of the upper half than is left free, and others always find room', () => {
  const room = new ScarceRoom(1000);
  const batch = newBatch();
  let taken = 0;
  const fill = (connection: string): number => {
    const before = taken;
    for (; room.has(1, taken, connection); taken++) room.take(1, taken, connection, batch);
    return taken - before;
  };
  // The lower half is for whoever comes; of the rest each has half of what was left.
  expect([fill('one'), fill('two'), fill('three'), fill('four')]).toEqual([750, 125, 63, 31]);
  expect(room.has(1, taken, 'one')).toBe(false);
  expect(room.has(8, taken, 'modest')).toBe(true);
  // Callers without a connection have what is there.
  expect(room.has(1000 - taken, taken, undefined)).toBe(true);
  expect(room.has(1000 - taken + 1, taken, undefined)).toBe(false);
  room.giveBack(batch);
  expect(room.has(400, 600, 'one')).toBe(true);
});
