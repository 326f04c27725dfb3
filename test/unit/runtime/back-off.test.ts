import { describe, expect, test } from '@jest/globals';
import { BackOff } from '../../../src/runtime/timers.js';

const LEAST_PAUSE_MS = 100;

describe('pauses', () => {
  const pauses = (count: number, random: number, options: object = {}) => {
    const backOff = new BackOff({
      initialMs: 1000,
      minMs: LEAST_PAUSE_MS,
      maxMs: 5000,
      jitterFactor: 0.5,
      random: () => random,
      ...options,
    });
    return Array.from({ length: count }, () => backOff.next());
  };

  test('double up to the maximum', () => {
    expect(pauses(5, 0.5, { jitterFactor: 0 })).toEqual([1000, 2000, 4000, 5000, 5000]);
  });

  test('are randomized, but never above the maximum', () => {
    expect(pauses(5, 0)).toEqual([500, 1000, 2000, 2500, 2500]);
    expect(pauses(5, 1)).toEqual([1500, 3000, 5000, 5000, 5000]);
  });

  test('are never so short that refused connections cause a busy loop', () => {
    expect(pauses(3, 0, { jitterFactor: 1 })).toEqual([LEAST_PAUSE_MS, LEAST_PAUSE_MS, LEAST_PAUSE_MS]);
    expect(pauses(2000, 0, { initialMs: 0, maxMs: 0 }).every((pause) => pause === LEAST_PAUSE_MS)).toBe(true);
  });

  test('stay at the maximum after many attempts', () => {
    expect(pauses(5000, 0.5, { jitterFactor: 0 }).at(-1)).toBe(5000);
  });

  test('start from the beginning after a success', () => {
    const backOff = new BackOff({ initialMs: 1000, maxMs: 5000, jitterFactor: 0, random: () => 0 });
    backOff.next();
    backOff.next();
    backOff.reset();
    expect(backOff.next()).toBe(1000);
  });
});
