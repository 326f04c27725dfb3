/*
 * Checks the reference's arithmetic for near, over and within limits, with tables and with a simulation of its counter.
 */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Take, TakeOutcome } from '../../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import type { Rate } from '../../../../src/limiter/rate.js';
import { tokenBucketRate } from '../../../../src/limiter/token-bucket.js';
import { countHits, RULE_COUNTERS } from '../../../../src/telemetry/reference/stat-series.js';
import { runs } from '../../../support/assert/runs.js';

type Counter = (typeof RULE_COUNTERS)[number];
type Counts = Partial<Record<Counter, number>>;

const RULES = { nearLimitRatio: 0.8, deniedHitsCount: true };
const window = (limit: number): Rate => windowRate('minute', limit);
const bucket = (tokens: number): Rate => tokenBucketRate(tokens, 1, 1_000_000);

function item(rate: Rate, hits: number, refund = false): Take {
  return { key: 'k', hashTagLength: 1, rate, hits, refund, enforcement: 'enforce' };
}

function outcome(used: number, overLimit: boolean, cached = false): TakeOutcome {
  return { overLimit, remaining: 0, waitMicros: 0, used, uncollectedHits: 0, cached };
}

/** Returns the counts of one take, without zeros. */
function countsOf(
  take: Take,
  result: TakeOutcome | undefined,
  { shadowed = false, rules = RULES } = {},
): Counts {
  const values = RULE_COUNTERS.map(() => 0);
  countHits(values, rules, take, result, shadowed);
  return Object.fromEntries(
    RULE_COUNTERS.map((name, at) => [name, values[at]] as const).filter(([, value]) => value !== 0),
  );
}

describe('a window of 10 (near beyond 8)', () => {
  test.each<[string, number, number, boolean, Counts]>([
    ['far from the limit', 1, 1, false, { total_hits: 1, within_limit: 1 }],
    ['at the threshold', 8, 1, false, { total_hits: 1, within_limit: 1 }],
    ['just past the threshold', 9, 1, false, { total_hits: 1, within_limit: 1, near_limit: 1 }],
    ['across the threshold', 10, 5, false, { total_hits: 5, within_limit: 5, near_limit: 2 }],
    ['wholly near', 10, 2, false, { total_hits: 2, within_limit: 2, near_limit: 2 }],
    ['the first one over', 11, 1, true, { total_hits: 1, over_limit: 1 }],
    ['far over', 50, 3, true, { total_hits: 3, over_limit: 3 }],
    ['across the limit from near', 12, 3, true, { total_hits: 3, over_limit: 2, near_limit: 1 }],
    ['across threshold and limit', 12, 7, true, { total_hits: 7, over_limit: 2, near_limit: 2 }],
    ['a peek below', 9, 0, false, {}],
    ['a peek over', 11, 0, true, {}],
  ])('%s', (_name, used, hits, overLimit, counts) => {
    expect(countsOf(item(window(10), hits), outcome(used, overLimit))).toEqual(counts);
  });

  test('a cached denial counts all hits as over the limit, and once for the local cache', () => {
    expect(countsOf(item(window(10), 4), outcome(0, true, true))).toEqual({
      total_hits: 4,
      over_limit: 4,
      over_limit_with_local_cache: 4,
    });
  });

  test('shadow_mode counts hits over the limit', () => {
    const shadowed = { shadowed: true };
    expect(countsOf(item(window(10), 3), outcome(12, true), shadowed)).toMatchObject({ shadow_mode: 2 });
    expect(countsOf(item(window(10), 3), outcome(13, true), shadowed)).toMatchObject({ shadow_mode: 3 });
    expect(countsOf(item(window(10), 3), outcome(0, true, true), shadowed)).toMatchObject({ shadow_mode: 3 });
    expect(countsOf(item(window(10), 3), outcome(5, false), shadowed)).not.toHaveProperty('shadow_mode');
  });

  test('without a decision, only the hits count', () => {
    expect(countsOf(item(window(10), 3), undefined)).toEqual({ total_hits: 3 });
  });

  test('a refund is counted separately', () => {
    expect(countsOf(item(window(10), 3, true), outcome(2, false))).toEqual({ total_negative_hits: 3 });
  });

  test('if denied hits do not count, the statistics are the same', () => {
    const rules = { ...RULES, deniedHitsCount: false };
    const asked = item(window(10), 7);
    expect(countsOf(asked, outcome(5, true), { rules })).toEqual(countsOf(asked, outcome(12, true)));
    expect(countsOf(item(window(10), 1), outcome(10, true), { rules })).toEqual({
      total_hits: 1,
      over_limit: 1,
    });
  });

  test('an item of a request that another descriptor denied may not be counted', () => {
    expect(countsOf(item(window(10), 5), outcome(2, false))).toEqual({ total_hits: 5, within_limit: 5 });
  });

  test('on_store_failure: deny has no count', () => {
    expect(countsOf(item(window(10), 5), outcome(0, true))).toEqual({ total_hits: 5, over_limit: 5 });
  });
});

describe('a token bucket of 10', () => {
  test.each<[string, number, number, boolean, Counts]>([
    ['full before', 1, 1, false, { total_hits: 1, within_limit: 1 }],
    ['the last two tokens', 10, 2, false, { total_hits: 2, within_limit: 2, near_limit: 2 }],
    ['dry', 10, 1, true, { total_hits: 1, over_limit: 1 }],
    ['more than is there', 7, 5, true, { total_hits: 5, over_limit: 2, near_limit: 2 }],
    ['more than it holds', 0, 25, true, { total_hits: 25, over_limit: 15, near_limit: 2 }],
  ])('%s', (_name, used, hits, overLimit, counts) => {
    expect(countsOf(item(bucket(10), hits), outcome(used, overLimit))).toEqual(counts);
  });
});

describe('near thresholds', () => {
  // Values computed with Go: uint64(math.Floor(float64(float32(limit) * float32(ratio)))).
  test.each([
    [10, 0.8, 8],
    [5, 0.8, 4],
    [3, 0.8, 2],
    [100, 0.29, 29],
    [1000, 0.7, 700],
    [16_777_217, 0.8, 13_421_773],
    [4_294_967_295, 0.8, 3_435_973_888],
    [20, 1.5, 30],
  ])('of %d at %d is %d', (limit, nearLimitRatio, threshold) => {
    const rules = { ...RULES, nearLimitRatio };
    const at = (used: number) => countsOf(item(window(limit), 1), outcome(used, false), { rules });
    expect(at(threshold)).not.toHaveProperty('near_limit');
    expect(at(threshold + 1)).toHaveProperty('near_limit', 1);
  });
});

test('a series of takes has the same counts as the reference', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 30 }),
      fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 40 }),
      (limit, takes) => {
        const values = RULE_COUNTERS.map(() => 0);
        const expected = { total: 0, over: 0, near: 0, within: 0 };
        const near = Math.floor(Math.fround(limit * Math.fround(0.8)));
        let used = 0;
        for (const hits of takes) {
          used += hits;
          const overLimit = used > limit;
          countHits(values, RULES, item(window(limit), hits), outcome(used, overLimit), false);
          expected.total += hits;
          // Count each hit separately instead of by ranges.
          for (let hit = used - hits + 1; hit <= used; hit++) {
            if (hit > limit) expected.over++;
            else if (hit > near) expected.near++;
          }
          if (!overLimit) expected.within += hits;
        }
        expect(values.slice(0, 4)).toEqual([expected.total, expected.over, expected.near, expected.within]);
      },
    ),
    runs(300),
  );
});

test('extreme hits do not corrupt a counter', () => {
  const values = RULE_COUNTERS.map(() => 0);
  const most = Number.MAX_SAFE_INTEGER;
  for (let call = 0; call < 3; call++) {
    countHits(values, RULES, item(window(10), most), outcome(most, true), true);
  }
  for (const value of values) expect(Number.isSafeInteger(value)).toBe(true);
  const before = values[0] as number;
  countHits(values, RULES, item(window(10), 1), outcome(1, false), false);
  expect(values[0]).toBe(before + 1);
});
