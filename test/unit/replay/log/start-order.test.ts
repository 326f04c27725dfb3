import { describe, expect, test } from '@jest/globals';
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
  for (let i = 0; i < 50; i++) add(-6);
  expect(release(11.9).slice(50)).toEqual([-5]);
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

describe('requests with a time that is far from all others', () => {
  const WEEK = 7 * 86_400;
  const all = Number.POSITIVE_INFINITY;

  test('get the time of a neighbor, before and after the others', () => {
    const { order, add, release } = newOrder(2);
    for (const seconds of [0, 1, 50 * WEEK, 50 * WEEK + 1, 99 * WEEK, 200 * WEEK]) add(seconds);
    for (let i = 2; i < 60; i++) add(50 * WEEK + i);
    const times = release(all);
    expect(times.slice(0, 4)).toEqual([0, 0, 0, 1].map((second) => 50 * WEEK + second));
    expect(times.slice(-3)).toEqual([59, 59, 59].map((second) => 50 * WEEK + second));
    expect(order).toMatchObject({ late: 0, runs: { far: 4, gaps: { count: 0 } } });
  });

  test('also in a log of a few requests', () => {
    const { order, add, release } = newOrder(2);
    for (const seconds of [0, 50 * WEEK, 50 * WEEK + 1, 50 * WEEK + 2, 50 * WEEK + 3, 50 * WEEK + 4])
      add(seconds);
    expect(release(all).map((second) => second - 50 * WEEK)).toEqual([0, 0, 1, 2, 3, 4]);
    expect(order.runs.far).toBe(1);
  });

  test('also if they come late, but not if the clock was set back', () => {
    const { order, add, release } = newOrder(2);
    for (let i = 0; i < 60; i++) add(50 * WEEK + i);
    expect(release(50 * WEEK + 59)).toHaveLength(57);
    add(0);
    add(50 * WEEK + 60);
    expect(release(all).map((second) => second - 50 * WEEK)).toEqual([56, 57, 58, 59, 60]);
    expect(order).toMatchObject({ late: 0, runs: { far: 1 } });
    for (let i = 0; i < 20; i++) add(i);
    expect(order).toMatchObject({ late: 11, runs: { far: 10 } });
  });

  test('keep their time if they are not few, or if all are far from each other', () => {
    const { order, add, release } = newOrder(2);
    for (let i = 0; i < 10; i++) add(i);
    for (let i = 0; i < 60; i++) add(50 * WEEK + i);
    expect(release(all)[9]).toBe(9);
    const months = newOrder(2);
    for (let i = 0; i < 12; i++) months.add(i * 5 * WEEK);
    expect(months.release(all)).toEqual(Array.from({ length: 12 }, (_, i) => i * 5 * WEEK));
    expect([order.runs.far, months.order.runs.far]).toEqual([0, 0]);
  });
});
