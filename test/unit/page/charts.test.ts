import { describe, expect, test } from '@jest/globals';
import { queryWith, rangeOf, slotsOf } from '../../../src/page/text/chart-range.js';
import { axisTop, groupAverages } from '../../../src/page/text/chart-shape.js';
import { hasTraffic } from '../../../src/page/text/recent-rates.js';

describe('charts', () => {
  test.each([
    [0, 1],
    [0.03, 0.03],
    [7.1, 8],
    [10.4, 15],
    [100, 100],
    [101, 150],
  ])('the axis of values up to %d ends at %d', (most, top) => expect(axisTop(most)).toBe(top));

  test('steps are averaged in groups', () => {
    expect(groupAverages([1, 2, 3, 4, 5], 2)).toEqual([4.5, 2.5, 1]);
  });
});

test.each([
  [{ ok: [0, 0], errors: [0] }, false],
  [{ ok: [] }, false],
  [{ ok: [0, 0.1] }, true],
  // Calls with errors count as traffic, too.
  [{ ok: [0, 0], errors: [0, 3] }, true],
])('%j contains requests: %s', (series, expected) => expect(hasTraffic(series)).toBe(expected));

describe('the time axis', () => {
  test.each([
    ['', 'start'],
    ['?range=5m', '5m'],
    ['?a=b&range=15m', '15m'],
    ['?range=1h', '1h'],
    ['?range=2d', 'start'],
  ])('in the URL %j is %s', (query, name) => expect(rangeOf(query).name).toBe(name));

  test('is stored in the URL, except for the default', () => {
    expect(queryWith('?a=b', rangeOf('?range=5m'))).toBe('?a=b&range=5m');
    expect(queryWith('?range=5m', rangeOf(''))).toBe('');
  });

  test.each([
    ['5m', 5, 60],
    ['15m', 720, 180],
    ['1h', 5, 720],
    ['start', 0, 12],
    ['start', 40, 40],
    ['start', 720, 720],
    ['start', 1000, 720],
  ])('%s with %d known steps shows %d', (name, known, slots) => {
    expect(slotsOf(rangeOf(`?range=${name}`), 5, known)).toBe(slots);
    expect(slotsOf(rangeOf(`?range=${name}`), 0, known)).toBe(2);
  });
});
