import { expect, test } from '@jest/globals';
import { Room } from '../../../src/runtime/room.js';

test('a connection has no more of the upper half than is left free, and others always find room', () => {
  const room = new Room(1024);
  const scarce = new Map<string, number>();
  const fill = (connection: string): number => {
    const before = room.taken;
    while (room.has(1, connection)) {
      if (room.take(1, connection)) scarce.set(connection, (scarce.get(connection) ?? 0) + 1);
    }
    return room.taken - before;
  };
  // The lower half is for whoever comes; of the rest, but for an eighth, each has half of what was left.
  expect([fill('one'), fill('two'), fill('three'), fill('four')]).toEqual([704, 96, 48, 24]);
  expect([...scarce]).toEqual([
    ['one', 192],
    ['two', 96],
    ['three', 48],
    ['four', 24],
  ]);
  expect(room.has(1, 'one')).toBe(false);
  expect(room.has(8, 'modest')).toBe(true);
  // Callers without a connection have what is there.
  expect(room.has(1024 - room.taken, undefined)).toBe(true);
  expect(room.has(1024 - room.taken + 1, undefined)).toBe(false);
  room.giveBack(room.taken - 600, scarce);
  expect(room.has(200, 'one')).toBe(true);
});

test('however many connections take all they can get, one that holds nothing and asks little finds room', () => {
  const room = new Room(1024 * 1024);
  const fill = (connection: number): void => {
    for (let amount = 256 * 1024; amount > 2048; amount /= 2) {
      while (room.has(amount, connection)) room.take(amount, connection);
    }
  };
  for (let connection = 0; connection < 1000; connection++) fill(connection);
  expect(1024 * 1024 - room.taken).toBeGreaterThanOrEqual(128 * 1024);
  expect([room.has(4096, 'modest'), room.has(2048, 'modest')]).toEqual([false, true]);
  room.take(2048, 'modest');
  expect(room.has(2048, 'modest')).toBe(false);
});

test('whoever comes first may have more than there is', () => {
  const room = new Room(10);
  expect(room.has(100, 'one')).toBe(true);
  room.take(100, 'one');
  expect(room.has(1, 'two')).toBe(false);
  room.giveBack(100);
  expect(room.has(1, 'two')).toBe(true);
});
