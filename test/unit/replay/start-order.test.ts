import { expect, test } from '@jest/globals';
import { StartOrder, type Timed, TimeQueue } from '../../../src/replay/start-order.js';
import { seededRandom } from '../../support/limiter/seeded-random.js';

interface Call extends Timed {
  readonly name: number;
}

/** Takes all calls that are ready. */
function ready(order: StartOrder<Call>): number[] {
  const names: number[] = [];
  for (let call = order.next(); call !== undefined; call = order.next()) names.push(call.name);
  return names;
}

test('sorts by time, and keeps the order of equal times', () => {
  const random = seededRandom(1);
  const queue = new TimeQueue<Call>();
  const calls = Array.from({ length: 5000 }, (_, name) => ({ name, timeMicros: Math.floor(random() * 500) }));
  const taken: Call[] = [];
  for (const [at, call] of calls.entries()) {
    queue.add(call);
    // Items that were taken before have earlier times.
    if (at % 7 === 0 && queue.firstMicros === 0) taken.push(queue.take() as Call);
  }
  while (queue.size > 0) taken.push(queue.take() as Call);
  const sorted = calls.toSorted((a, b) => a.timeMicros - b.timeMicros || a.name - b.name);
  expect(taken).toEqual(sorted);
  expect(queue.take()).toBeUndefined();
  expect(queue.firstMicros).toBe(Number.POSITIVE_INFINITY);
});

test('passes a request on once no line within the window can precede it', () => {
  const order = new StartOrder<Call>(10);
  order.open('log');
  order.add('log', { name: 1, timeMicros: 105 });
  order.add('log', { name: 2, timeMicros: 100 });
  order.add('log', { name: 3, timeMicros: 111 });
  expect(ready(order)).toEqual([2]);
  order.add('log', { name: 4, timeMicros: 101 });
  expect([ready(order), order.late]).toEqual([[4], 0]);
  order.end('log');
  expect(ready(order)).toEqual([1, 3]);
});

test('counts requests that come too late', () => {
  const order = new StartOrder<Call>(10);
  order.open('log');
  for (const [name, timeMicros] of [100, 200, 195, 191].entries()) {
    order.add('log', { name, timeMicros });
    ready(order);
  }
  expect(order.late).toBe(0);
  order.add('log', { name: 9, timeMicros: 189 });
  expect([ready(order), order.late]).toEqual([[9], 1]);
});

test('merges logs by time', () => {
  const order = new StartOrder<Call>(10);
  order.open('a');
  order.open('b');
  expect(order.furthestBehind()).toBe('a');
  order.add('a', { name: 1, timeMicros: 500 });
  expect([order.furthestBehind(), ready(order)]).toEqual(['b', []]);
  order.add('b', { name: 2, timeMicros: 100 });
  order.add('b', { name: 3, timeMicros: 120 });
  expect([order.furthestBehind(), ready(order)]).toEqual(['b', [2]]);
  order.end('b');
  expect([order.furthestBehind(), ready(order)]).toEqual(['a', [3]]);
  order.end('a');
  expect([order.furthestBehind(), ready(order)]).toEqual([undefined, [1]]);
});

test('a request whose line is written at its end is sorted by its start, and is not late', () => {
  const order = new StartOrder<Timed>(100, 10);
  const log = {};
  order.open(log);
  for (const timeMicros of [1, 50, 90]) order.add(log, { timeMicros, writtenMicros: timeMicros });
  order.add(log, { timeMicros: 2, writtenMicros: 91 });
  expect(order.late).toBe(0);
  order.add(log, { timeMicros: 3, writtenMicros: 4 });
  expect(order.late).toBe(1);
  order.end(log);
  expect(Array.from({ length: 5 }, () => order.next()?.timeMicros)).toEqual([1, 2, 3, 50, 90]);
});
