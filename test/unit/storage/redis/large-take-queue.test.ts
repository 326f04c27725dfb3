import { describe, expect, test } from '@jest/globals';
import { StorageError, type TakeItem, type TakeResult } from '../../../../src/limiter/bucket-store.js';
import { LargeTakeQueue } from '../../../../src/storage/redis/large-take-queue.js';
import { HUNDRED, takeItem } from '../../../support/limiter/take-items.js';

function itemsOf(name: string, count: number): TakeItem[] {
  return Array.from({ length: count }, (_, i) => takeItem(`${name}${i}`, HUNDRED));
}

/** Sends requests. Returns their first keys, in order. */
function sent(queue: LargeTakeQueue, count = Number.POSITIVE_INFINITY): string[] {
  const keys: string[] = [];
  for (let take = queue.peek(); take !== undefined && keys.length < count; take = queue.peek()) {
    keys.push((take.items[0] as TakeItem).key);
    queue.shift();
  }
  return keys;
}

describe('requests with many items', () => {
  test('of one connection are sent in order', () => {
    const queue = new LargeTakeQueue(1000);
    for (const name of ['a', 'b', 'c']) void queue.add(itemsOf(name, 100), 1, 'connection', 0);
    expect(sent(queue)).toEqual(['a0', 'b0', 'c0']);
    expect([queue.items, queue.peek()]).toEqual([0, undefined]);
  });

  test('of several connections take turns by items, not by requests', () => {
    const queue = new LargeTakeQueue(100_000);
    for (const name of ['a', 'b', 'c', 'd']) void queue.add(itemsOf(name, 1000), 1, 'greedy', 0);
    for (const name of ['v', 'w', 'x', 'y', 'z']) void queue.add(itemsOf(name, 60), 1, 'modest', 0);
    // Each turn is worth 64 items. The small flow sends all of its 300 items before another flow has the credit for its
    // first 1,000.
    expect(sent(queue)).toEqual(['v0', 'w0', 'x0', 'y0', 'z0', 'a0', 'b0', 'c0', 'd0']);
  });

  test('of an idle connection come before those of connections that send all the time', () => {
    const queue = new LargeTakeQueue(1_000_000);
    for (let n = 0; n < 2000; n++) void queue.add(itemsOf('g', 500), 1, n % 1000, 0);
    sent(queue, 1);
    void queue.add(itemsOf('new', 64), 1, 'modest', 0);
    expect(sent(queue, 1)).toEqual(['new0']);
    // Old flows get their turns, even if many new flows arrive.
    for (let n = 0; n < 100; n++) void queue.add(itemsOf(`fresh${n}-`, 64), 1, `fresh ${n}`, 0);
    const order = sent(queue);
    expect(order.indexOf('g0')).toBeGreaterThan(10);
    expect(order.indexOf('g0')).toBeLessThan(20);
    expect(order.indexOf('fresh99-0')).toBeLessThan(120);
    expect([queue.items, queue.peek()]).toEqual([0, undefined]);
  });

  test('of ten connections with requests of the maximum size leave capacity for others', () => {
    const queue = new LargeTakeQueue(20_000);
    let taken = 0;
    for (let round = 0; round < 3; round++) {
      for (let greedy = 0; greedy < 10; greedy++) {
        if (!queue.hasRoomFor(4000, greedy)) continue;
        void queue.add(itemsOf('g', 4000), 1, greedy, 0);
        taken++;
      }
    }
    expect(taken).toBe(5);
    expect(queue.hasRoomFor(9, 'modest')).toBe(true);
    expect(queue.hasRoomFor(65, 'modest')).toBe(false);
  });

  test('may use half of the capacity, and some when other connections have used that half', () => {
    const queue = new LargeTakeQueue(1000);
    const fill = (connection: string): number => {
      let count = 0;
      while (queue.hasRoomFor(50, connection)) {
        void queue.add(itemsOf('x', 50), 1, connection, 0);
        count++;
      }
      return count * 50;
    };
    expect([fill('one'), fill('two'), fill('three')]).toEqual([500, 250, 150]);
    for (let more = 0; more < 1000; more++) {
      const connection = `late ${more}`;
      if (queue.hasRoomFor(50, connection)) void queue.add(itemsOf('x', 50), 1, connection, 0);
    }
    expect(queue.items).toBe(2000);
    // A single request may have any size.
    expect(new LargeTakeQueue(10).hasRoomFor(1000, 'one')).toBe(true);
  });

  test('expire without an effect on the others', async () => {
    const queue = new LargeTakeQueue(1000);
    const results = [10, 30, 20].map((deadline) =>
      queue.add(itemsOf(`d${deadline}`, 10), deadline, deadline, 0),
    );
    expect(queue.soonestDeadline).toBe(10);
    const error = new StorageError('timeout', 'late');
    queue.expire(20, error);
    expect([queue.items, queue.soonestDeadline]).toEqual([10, 30]);
    expect(await Promise.all([results[0], results[2]] as Promise<TakeResult>[])).toEqual([error, error]);
    expect(sent(queue)).toEqual(['d300']);
    queue.expire(100, error);
    expect(queue.soonestDeadline).toBe(Number.POSITIVE_INFINITY);
  });
});
