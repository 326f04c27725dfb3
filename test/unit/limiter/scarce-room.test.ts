import { expect, test } from '@jest/globals';
import { ScarceRoom } from '../../../src/limiter/scarce-room.js';

test('a connection has no more of the upper half than is left free, and others always find room', () => {
  const room = new ScarceRoom(1000);
  const scarce = new Map<string, number>();
  const fill = (connection: string): number => {
    const before = room.taken;
    while (room.has(1, connection)) {
      if (room.take(1, connection)) scarce.set(connection, (scarce.get(connection) ?? 0) + 1);
    }
    return room.taken - before;
  };
  // The lower half is for whoever comes; of the rest each has half of what was left.
  expect([fill('one'), fill('two'), fill('three'), fill('four')]).toEqual([750, 125, 63, 31]);
  expect([...scarce]).toEqual([
    ['one', 250],
    ['two', 125],
    ['three', 63],
    ['four', 31],
  ]);
  expect(room.has(1, 'one')).toBe(false);
  expect(room.has(8, 'modest')).toBe(true);
  // Callers without a connection have what is there.
  expect(room.has(1000 - room.taken, undefined)).toBe(true);
  expect(room.has(1000 - room.taken + 1, undefined)).toBe(false);
  room.giveBack(room.taken - 600, scarce);
  expect(room.has(400, 'one')).toBe(true);
});

test('whoever comes first may have more than there is', () => {
  const room = new ScarceRoom(10);
  expect(room.has(100, 'one')).toBe(true);
  room.take(100, 'one');
  expect(room.has(1, 'two')).toBe(false);
  room.giveBack(100);
  expect(room.has(1, 'two')).toBe(true);
});
