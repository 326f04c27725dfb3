import { expect, test } from '@jest/globals';
import { Signal } from '../../../src/runtime/signal.js';
import { throttledLog } from '../../../src/runtime/timers.js';

test('listeners are called in the order of registration', () => {
  const heard: unknown[] = [];
  const signal = new Signal<string, number>();
  signal.add((text, number) => heard.push(['first', text, number]));
  signal.add((text) => heard.push(['second', text]));
  signal.emit('a', 1);
  expect(heard).toEqual([
    ['first', 'a', 1],
    ['second', 'a'],
  ]);
});

test('a throttled function runs at most once in ten seconds', () => {
  let nowMs = 0;
  const mayTell = throttledLog(() => nowMs);
  const told = [0, 1, 9999, 10_000, 10_001, 19_999, 25_000].filter((at) => {
    nowMs = at;
    return mayTell();
  });
  expect(told).toEqual([0, 10_000, 25_000]);
});
