import { expect, test } from '@jest/globals';
import { LineFields } from '../../../../src/replay/log/lines/line-fields.js';
import { RowBuffer } from '../../../../src/replay/log/order/row-buffer.js';
import { MAX_WAITING_REQUESTS, StartOrder } from '../../../../src/replay/log/order/start-order.js';

const LINE = Buffer.from('acme');

function newOrder(windowSeconds: number) {
  const output = new RowBuffer();
  const order = new StartOrder(windowSeconds * 1e6, 1, output);
  const fields = new LineFields(1);
  fields.set(0, 'acme', 0, 4);
  const add = (seconds: number) => order.add(seconds * 1e6, 1, LINE, 0, fields);
  /** Releases what is due, and returns the seconds. */
  const release = (seconds: number) => {
    while (order.release(seconds * 1e6));
    const { times } = output.take();
    return [...times].filter((_, i) => i % 2 === 0).map((micros) => micros / 1e6);
  };
  return { order, output, add, release };
}

test('releases seconds that the clock has passed by the window, sorted by microseconds', () => {
  const { order, add, release } = newOrder(2);
  for (const seconds of [10.5, 9.75, 10.25, 10.5, 13, -5]) add(seconds);
  expect(release(11.9)).toEqual([-5]);
  expect(release(13)).toEqual([9.75, 10.25, 10.5, 10.5]);
  add(10.1);
  add(11);
  expect(order.late).toBe(1);
  expect(release(Number.POSITIVE_INFINITY)).toEqual([10.1, 11, 13]);
});

test('releases the oldest second if too many requests wait', () => {
  const { order, output, add } = newOrder(60);
  for (let i = 0; i < MAX_WAITING_REQUESTS; i++) add(i % 4);
  expect(output.count).toBe(0);
  add(3);
  expect(output.count).toBe(MAX_WAITING_REQUESTS / 4);
  expect(order.late).toBe(0);
  add(0);
  expect(order.late).toBe(1);
});
