import { expect, test } from '@jest/globals';
import { FairCapacity } from '../../../src/runtime/fair-capacity.js';

test('a connection has at most the free amount of the upper half, and others always get some', () => {
  const room = new FairCapacity(1024);
  const scarce = new Map<string, number>();
  const fill = (connection: string): number => {
    const before = room.used;
    while (room.canAcquire(1, connection)) {
      if (room.acquire(1, connection)) scarce.set(connection, (scarce.get(connection) ?? 0) + 1);
    }
    return room.used - before;
  };
  // The lower half is available to any connection. Each connection gets half of the free part of the upper half, minus
  // the reserved eighth.
  expect([fill('one'), fill('two'), fill('three'), fill('four')]).toEqual([704, 96, 48, 24]);
  expect([...scarce]).toEqual([
    ['one', 192],
    ['two', 96],
    ['three', 48],
    ['four', 24],
  ]);
  expect(room.canAcquire(1, 'one')).toBe(false);
  expect(room.canAcquire(8, 'modest')).toBe(true);
  // Callers without a connection may acquire everything that is free.
  expect(room.canAcquire(1024 - room.used, undefined)).toBe(true);
  expect(room.canAcquire(1024 - room.used + 1, undefined)).toBe(false);
  room.release(room.used - 600, scarce);
  expect(room.canAcquire(200, 'one')).toBe(true);
});

test('a small request of a new connection fits, however many connections use all they can', () => {
  const room = new FairCapacity(1024 * 1024);
  const fill = (connection: number): void => {
    for (let amount = 256 * 1024; amount > 2048; amount /= 2) {
      while (room.canAcquire(amount, connection)) room.acquire(amount, connection);
    }
  };
  for (let connection = 0; connection < 1000; connection++) fill(connection);
  expect(1024 * 1024 - room.used).toBeGreaterThanOrEqual(128 * 1024);
  expect([room.canAcquire(4096, 'modest'), room.canAcquire(2048, 'modest')]).toEqual([false, true]);
  room.acquire(2048, 'modest');
  expect(room.canAcquire(2048, 'modest')).toBe(false);
});

test('the first request may exceed the capacity', () => {
  const room = new FairCapacity(10);
  expect(room.canAcquire(100, 'one')).toBe(true);
  room.acquire(100, 'one');
  expect(room.canAcquire(1, 'two')).toBe(false);
  room.release(100);
  expect(room.canAcquire(1, 'two')).toBe(true);
});
