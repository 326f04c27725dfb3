import { expect, test } from '@jest/globals';
import {
  oddness,
  rateText,
  SPOKEN_RATES,
  spokenNumber,
} from '../../../../src/replay/suggest/spoken-rates.js';

test('rates ascend in small steps', () => {
  const rates = SPOKEN_RATES.map(({ perSecond }) => perSecond);
  expect([rates[0], rates.at(-1)]).toEqual([10 / 3600, 100_000]);
  for (const [i, rate] of rates.slice(1).entries()) {
    const step = rate / (rates[i] as number);
    expect(step).toBeGreaterThan(1);
    if (rate > 10 / 60 && rate <= 200) expect(step).toBeLessThanOrEqual(7 / 6 + 1e-9);
  }
});

test('a rate is said in the largest unit in which its count is whole', () => {
  const said = SPOKEN_RATES.map(({ count, unit }) => `${count}/${unit}`);
  expect(said).toEqual(
    expect.arrayContaining(['10/hour', '1/minute', '90/minute', '1/second', '8/second', '100/second']),
  );
  expect(said).not.toContain('60/minute');
});

test.each([
  [0, 1],
  [1, 1],
  [1.1, 2],
  [6, 6],
  [7, 8],
  [10, 10],
  [12.5, 15],
  [81, 100],
  [101, 120],
  [2001, 2500],
  [9999, 10_000],
])('%d rounds up to %d', (least, spoken) => {
  expect(spokenNumber(least)).toBe(spoken);
});

test.each([
  [12.4, '12 per second'],
  [5, '5 per second'],
  [1.37, '82 per minute'],
  [0.2, '12 per minute'],
  [1 / 60, '1 per minute'],
  [0.01, '36 per hour'],
  [1234, '1,234 per second'],
])('%d is %s', (perSecond, text) => {
  expect(rateText(perSecond)).toBe(text);
});

test('rounder numbers are less odd', () => {
  expect([1, 20, 500, 3, 15, 250, 80, 13, 28, 45].map(oddness)).toEqual([0, 0, 0, 1, 1, 1, 1, 2, 2, 2]);
});
