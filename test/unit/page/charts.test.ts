import { describe, expect, test } from '@jest/globals';
import { queryWith, rangeOf, slotsOf } from '../../../src/page/text/chart-range.js';
import { axisTop, groupAverages, peaksOf } from '../../../src/page/text/chart-shape.js';
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

  test('with few points, each point is the highest value of its group', () => {
    expect(peaksOf([1, 2, 3, 4], 5, 20, 2)).toEqual([
      [10, 20],
      [2, 4],
    ]);
    expect(peaksOf([1, 2, 3, 4], 5, 25, 2)).toEqual([
      [10, 20, 25],
      [1, 3, 4],
    ]);
    expect(peaksOf([1, 2], 5, 40, 1)).toEqual([
      [35, 40],
      [1, 2],
    ]);
    expect(peaksOf([], 5, 40, 2)).toEqual([[], []]);
  });

  test('a burst keeps its height and group when more steps follow', () => {
    const burstAt = 100;
    for (let last = burstAt; last < burstAt + 700; last++) {
      const steps = Array.from({ length: 720 }, (_, at) => (last - 719 + at === burstAt ? 200 : 0));
      const [times, values] = peaksOf(steps, 5, (last + 1) * 5, 4);
      expect(values.filter((value) => value > 0)).toEqual([200]);
      expect(times[values.indexOf(200)]).toBe(Math.min((last + 1) * 5, 104 * 5));
    }
  });

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
