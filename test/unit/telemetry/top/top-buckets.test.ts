import { expect, test } from '@jest/globals';
import {
  type BucketDescription,
  TopBuckets,
  type TopMeasure,
} from '../../../../src/telemetry/top/top-buckets.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';

/** A {@link TopBuckets} with a clock that the test moves. */
class Bench {
  micros = 0;
  readonly top: TopBuckets;

  constructor(capacity: number) {
    this.top = new TopBuckets({ capacity, nowMicros: () => this.micros, random: seededRandom(1) });
  }

  /** Counts a decision. */
  count(measure: TopMeasure, key: string, hits = 1, rule = 'rule'): void {
    const drawn = this.top.samplers[measure].take(hits);
    if (drawn === 0) return;
    const [domain = ''] = key.split(':');
    const about: BucketDescription = this.top.find(key) ?? {
      key,
      domain,
      rule,
      entries: [{ key: 'tenant', value: key }],
      usedRatio: undefined,
    };
    this.top.count(measure, about, drawn);
  }

  /** Lets seconds pass, with a tick each. */
  pass(seconds: number): void {
    for (let at = 0; at < seconds; at++) {
      this.micros += 1_000_000;
      this.top.tick();
    }
  }

  rank(
    by: TopMeasure,
    of: 'minute' | 'hour',
    most = 10,
    filter = {},
  ): readonly (readonly [string, number, number])[] {
    const rows = this.top.rank(by, { of, ...filter }, most);
    return rows.map(({ key, denied, used }) => [key, denied, used] as const);
  }
}

test('the most denied and the most used buckets come first, with both numbers', () => {
  const bench = new Bench(10);
  for (let at = 0; at < 5; at++) bench.count('denied', 'a:x');
  for (let at = 0; at < 3; at++) bench.count('used', 'a:y', 100);
  bench.count('used', 'a:x', 7);
  // Buckets without denials follow.
  expect(bench.rank('denied', 'minute')).toEqual([
    ['a:x', 5, 7],
    ['a:y', 0, 300],
  ]);
  expect(bench.rank('denied', 'minute', 1)).toEqual([['a:x', 5, 7]]);
  expect(bench.rank('used', 'minute')).toEqual([
    ['a:y', 0, 300],
    ['a:x', 5, 7],
  ]);
  expect(bench.rank('used', 'minute', 1)).toEqual([['a:y', 0, 300]]);
  expect(bench.rank('used', 'minute', 10, { domain: 'b' })).toEqual([]);
  expect(bench.rank('used', 'minute', 10, { domain: 'a', rule: 'other' })).toEqual([]);
  expect(bench.rank('used', 'minute', 1, { domain: 'a', rule: 'rule' })).toEqual([['a:y', 0, 300]]);
  expect(bench.top.about('minute')).toEqual({ error: { denied: 0, used: 0 }, coversMicros: 0, sampled: 1 });
});

test('counts disappear after a minute and an hour, and not earlier', () => {
  const bench = new Bench(10);
  bench.count('denied', 'a:x');
  bench.pass(60);
  expect(bench.rank('denied', 'minute')).toEqual([['a:x', 1, 0]]);
  expect(bench.top.about('minute').coversMicros).toBe(60_000_000);
  bench.pass(15);
  expect(bench.rank('denied', 'minute')).toEqual([]);
  expect(bench.top.about('minute').coversMicros).toBeLessThanOrEqual(75_000_000);
  expect(bench.rank('denied', 'hour')).toEqual([['a:x', 1, 0]]);
  bench.pass(3600 - 75);
  expect(bench.rank('denied', 'hour')).toEqual([['a:x', 1, 0]]);
  expect(bench.top.about('hour').coversMicros).toBe(3_600_000_000);
  bench.pass(700);
  expect(bench.rank('denied', 'hour')).toEqual([]);
  expect(bench.top.about('hour').coversMicros).toBeLessThan(4_300_000_000);
});

test('a process that was stopped shows no older counts than the time span', () => {
  const bench = new Bench(10);
  bench.count('denied', 'a:x');
  bench.micros += 3_000_000_000;
  bench.top.tick();
  expect(bench.rank('denied', 'minute')).toEqual([]);
  expect(bench.rank('denied', 'hour')).toEqual([['a:x', 1, 0]]);
});

/** Returns a key and its hits. */
type Traffic = (random: () => number, call: number) => readonly [key: string, hits: number];

test.each<[name: string, most: number, traffic: Traffic]>([
  ['skewed traffic', 3, (random) => [`a:${Math.floor(random() ** 3 * 300)}`, 1]],
  ['uniform traffic', 0, (random) => [`a:${Math.floor(random() * 300)}`, 1]],
  [
    'counts of any size',
    0,
    (random) => [`a:${Math.floor(random() * 300)}`, 1 + Math.floor(random() ** 8 * 1e5)],
  ],
  ['many keys that occur once', 1, (_, call) => [call % 10 === 0 ? 'a:steady' : `a:${call}`, 1]],
])('estimates of %s over several slices stay within the reported errors', (_, most, traffic) => {
  const bench = new Bench(20);
  const random = seededRandom(3);
  const exact = new Map<string, number>();
  let total = 0;
  for (let call = 0; call < 55 * 400; call++) {
    if (call > 0 && call % 400 === 0) bench.pass(1);
    const [key, hits] = traffic(random, call);
    bench.count('used', key, hits);
    exact.set(key, (exact.get(key) ?? 0) + hits);
    total += hits;
  }
  const { error } = bench.top.about('minute');
  // The error of each slice is a fraction of its total.
  expect(error.used).toBeGreaterThan(0);
  expect(error.used).toBeLessThanOrEqual(total / 21);
  const rows = bench.top.rank('used', { of: 'minute' }, 1000);
  expect(rows.length).toBeGreaterThan(20);
  const wrong = rows.filter(({ key, used, usedError }) => {
    const truth = exact.get(key) ?? 0;
    return used < truth || used - usedError > truth || usedError > error.used;
  });
  expect(wrong).toEqual([]);
  // Every bucket with a higher count than the error is shown.
  const shown = new Set(rows.map(({ key }) => key));
  for (const [key, truth] of exact) if (truth > error.used) expect(shown).toContain(key);
  const exactly = [...exact].sort(([, one], [, other]) => other - one).slice(0, most);
  expect(rows.slice(0, most).map(({ key }) => key)).toEqual(exactly.map(([key]) => key));
});

test.each(['skewed', 'flat'])(
  'estimates of many %s decisions per second, which are sampled, are close',
  (kind) => {
    const bench = new Bench(500);
    const random = seededRandom(4);
    const exact = new Map<string, number>();
    const tenants = 200;
    for (let second = 0; second < 8; second++) {
      for (let at = 0; at < 20_000; at++) {
        const key = `a:${Math.floor((kind === 'flat' ? random() : random() ** 3) * tenants)}`;
        bench.count('denied', key);
        exact.set(key, (exact.get(key) ?? 0) + 1);
      }
      bench.pass(1);
    }
    const { sampled } = bench.top.about('minute');
    expect(sampled).toBeGreaterThan(8);
    const rows = bench.rank('denied', 'minute', 1000);
    expect(rows).toHaveLength(tenants);
    // Five standard deviations at the reported sampling rate.
    const wrong = rows.filter(([key, denied]) => {
      const truth = exact.get(key) ?? 0;
      return Math.abs(denied - truth) > 5 * Math.sqrt(truth * sampled);
    });
    expect(wrong).toEqual([]);
  },
);

test('memory is bounded', () => {
  const bench = new Bench(100);
  for (let second = 0; second < 70; second++) {
    for (let at = 0; at < 300; at++) bench.count('used', `a:${second} ${at}`);
    bench.pass(1);
  }
  // 6 complete slices, and the current one, which keeps up to twice the capacity.
  expect(bench.top.rank('used', { of: 'minute' }, 10_000).length).toBeLessThanOrEqual(8 * 100);
});
