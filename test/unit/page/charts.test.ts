import { describe, expect, test } from '@jest/globals';
import { queryWith, rangeOf, slotsOf } from '../../../src/page/text/chart-range.js';
import {
  areaPath,
  axisTop,
  downsample,
  groupAverages,
  indexAt,
  linePath,
} from '../../../src/page/text/chart-shape.js';
import { hasTraffic, RecentRates } from '../../../src/page/text/recent-rates.js';

const BOX = { width: 100, height: 10 };

describe('charts', () => {
  test.each([
    [[], 1],
    [[0, 0], 1],
    [[0.03, 0.012], 0.03],
    [[7.1], 8],
    [[10.4, 3], 15],
    [[100], 100],
    [[101], 150],
  ])('the axis of %j ends at %d', (values, top) => expect(axisTop(values)).toBe(top));

  test('the last value is at the right edge, and unknown values are omitted', () => {
    expect(linePath([1, 2], 3, 2, BOX)).toBe('M50 5L100 0');
    expect(areaPath([1, 2], 3, 2, BOX)).toBe('M50 5L100 0L100 10L50 10Z');
    expect(linePath([9, 9, 0, 1, 2], 3, 2, BOX)).toBe('M0 10L50 5L100 0');
    expect([linePath([], 3, 1, BOX), areaPath([], 3, 1, BOX)]).toEqual(['', '']);
  });

  test('each position of the width is a value', () => {
    expect([indexAt(0, 3, 3), indexAt(0.5, 3, 3), indexAt(1, 3, 3)]).toEqual([0, 1, 2]);
    expect([indexAt(0, 2, 3), indexAt(0.5, 2, 3), indexAt(2, 2, 3)]).toEqual([undefined, 0, 1]);
    expect([indexAt(0, 5, 3), indexAt(1, 5, 3), indexAt(1, 0, 3)]).toEqual([2, 4, undefined]);
  });

  test('steps are averaged in groups', () => {
    expect(groupAverages([1, 2, 3, 4, 5], 2)).toEqual([4.5, 2.5, 1]);
  });

  test('with few points, each point is the highest value of its group', () => {
    expect(downsample([1, 2, 3, 4], 3, 4, 2)).toEqual({ values: [2, 4], slots: 3, per: 2, newest: 2 });
    expect(downsample([1, 2, 3, 4], 4, 4, 2)).toEqual({ values: [1, 3, 4], slots: 3, per: 2, newest: 1 });
    expect(downsample([1, 2], 7, 2, 10)).toEqual({ values: [1, 2], slots: 2, per: 1, newest: 1 });
    expect(downsample([], 0, 4, 2).values).toEqual([]);
  });

  test('a burst keeps its height and group when more steps follow', () => {
    const burstAt = 100;
    for (let last = burstAt; last < burstAt + 700; last++) {
      const steps = Array.from({ length: 720 }, (_, at) => (last - 719 + at === burstAt ? 200 : 0));
      const { values, per, newest } = downsample(steps, last, 720, 180);
      expect(values.filter((value) => value > 0)).toEqual([200]);
      const back = values.length - 1 - values.indexOf(200);
      const firstOfGroup = last - newest + 1 - back * per;
      expect(firstOfGroup).toBe(burstAt);
    }
  });
});

describe('KnownRates', () => {
  const all = (ok: number[], errors = ok) => ({
    ...{ ok, denied: ok, would: ok },
    ...{ errors, failure_allow: ok, failure_deny: ok, failure_local: ok },
  });
  const point = (ends: number, ok = 1) => ({
    ...{ ends, ok, denied: 0, would: 0 },
    ...{ errors: 2 * ok, failure_allow: 0, failure_deny: 0, failure_local: 0 },
  });

  test('steps are added as they end', () => {
    const rates = new RecentRates();
    expect(rates.add(point(10))).toBe(false);
    rates.read({ step: 5, ends: 10, all: all([7]), crowded: false });
    expect(rates.slots).toBe(720);
    expect(rates.add(point(15, 8))).toBe(true);
    expect([rates.series.ok, rates.series.errors, rates.ends]).toEqual([[7, 8], [7, 16], 15]);
    // The same step, or an older one, is ignored.
    expect([rates.add(point(15)), rates.add(point(10)), rates.series.ok]).toEqual([true, true, [7, 8]]);
    // A step is missing, so the history must be read again.
    expect([rates.add(point(25)), rates.series.ok]).toEqual([false, [7, 8]]);
  });

  test('one hour is stored', () => {
    const rates = new RecentRates();
    rates.read({ step: 600, ends: 0, all: all([1, 2, 3, 4, 5, 6]), crowded: false });
    rates.add(point(600, 7));
    expect(rates.series.ok).toEqual([2, 3, 4, 5, 6, 7]);
    expect([hasTraffic(all([0, 0])), hasTraffic(all([])), hasTraffic(all([0, 0.1]))]).toEqual([
      false,
      false,
      true,
    ]);
    // Calls with errors count as traffic, too.
    expect(hasTraffic(all([0, 0], [0, 3]))).toBe(true);
  });
});

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
