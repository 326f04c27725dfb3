import { describe, expect, test } from '@jest/globals';
import type { TakeOutcome } from '../../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { SeriesBudget } from '../../../../src/telemetry/bounded-counters.js';
import { DurationStats, MAX_SAMPLES } from '../../../../src/telemetry/reference/duration-stats.js';
import { ReferenceStats } from '../../../../src/telemetry/reference/reference-stats.js';
import { StatSeries, sanitiseStatName } from '../../../../src/telemetry/reference/stat-series.js';
import { takeItem } from '../../../support/limiter/take-items.js';

const TAKE = takeItem('k', windowRate('minute', 10));
const OK: TakeOutcome = {
  overLimit: false,
  remaining: 9,
  waitMicros: 1,
  used: 1,
  uncollectedHits: 0,
  cached: false,
};

function create(most: number, rules: readonly string[] = []) {
  const byRule = new SeriesBudget(most);
  const byCaller = new SeriesBudget(most);
  const stats = new ReferenceStats({ byRule, byCaller, nearLimitRatio: 0.8, deniedHitsCount: true });
  stats.setRuleNames(() => rules);
  return { stats, byRule, byCaller };
}

/** Returns every counter that is not zero. */
function all(stats: ReferenceStats): Record<string, number> {
  const found: Record<string, number> = {};
  for (const series of stats.series()) {
    series.values.forEach((value, at) => {
      if (value !== 0) found[series.nameAt(at)] = value;
    });
  }
  return found;
}

describe('names', () => {
  test.each([
    ['mongo_cps.database_users', 'mongo_cps.database_users'],
    ['d.path_/a:b|c', 'd.path_/a_b_c'],
    ['d.remote_address_10.0.0.1', 'd.remote_address_10_0_0_1'],
    ['d.k_1.2.3', 'd.k_1.2.3'],
    ['d.k_1.2.3.4567.8', 'd.k_1_2_3_4567.8'],
    ['a\nforged', 'a_forged'],
    ['tab\tand blank', 'tab_and blank'],
  ])('%j becomes %j', (name, sanitised) => {
    expect(sanitiseStatName(name)).toBe(sanitised);
  });
});

describe('the statistics of the reference', () => {
  test('have the names of the reference', () => {
    const { stats } = create(10, ['d.k']);
    stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
    stats.unknownDomain('who', 2);
    stats.configLoaded(true);
    stats.configLoaded(false);
    stats.globalShadow();
    stats.failed('redis');
    stats.failed('service');
    stats.durations('ShouldRateLimit').began();
    stats.setSources({
      pools: () => [{ name: 'redis_pool', active: 2, opened: 3, closed: 1 }],
      localCache: () => ({ hitCount: 4 }),
    });
    expect(all(stats)).toEqual({
      'ratelimit.service.rate_limit.d.k.total_hits': 1,
      'ratelimit.service.rate_limit.d.k.within_limit': 1,
      'ratelimit.service.rate_limit.who.domain_not_found': 2,
      'ratelimit.service.config_load_success': 1,
      'ratelimit.service.config_load_error': 1,
      'ratelimit.service.global_shadow_mode': 1,
      'ratelimit.service.call.should_rate_limit.redis_error': 1,
      'ratelimit.service.call.should_rate_limit.service_error': 1,
      'ratelimit_server.ShouldRateLimit.total_requests': 1,
      'ratelimit.redis_pool.cx_total': 3,
      'ratelimit.redis_pool.cx_local_close': 1,
    });
    expect(stats.gauges()).toEqual([
      ['ratelimit.redis_pool.cx_active', 2],
      ['ratelimit.localcache.hitCount', 4],
    ]);
  });

  test('return each change once', () => {
    const { stats } = create(10, ['d.k']);
    const deltas = () => {
      const told: Record<string, number> = {};
      for (const series of stats.takeSeries()) {
        series.takeDeltas((name, delta) => {
          told[name] = delta;
        });
      }
      return told;
    };
    stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
    stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
    stats.durations('Check').began();
    expect(deltas()).toEqual({
      'ratelimit.service.rate_limit.d.k.total_hits': 2,
      'ratelimit.service.rate_limit.d.k.within_limit': 2,
      'ratelimit_server.Check.total_requests': 1,
    });
    expect(deltas()).toEqual({});
    stats.add(stats.seriesOf('d.k', false), TAKE, undefined, false);
    expect(deltas()).toEqual({ 'ratelimit.service.rate_limit.d.k.total_hits': 1 });
  });

  test('100,000 values and 10,000 unknown domains create no more series than allowed, and lose no hits', () => {
    const { stats, byCaller } = create(1000, ['d.k']);
    for (let value = 0; value < 100_000; value++) {
      stats.add(stats.seriesOf(`d.k_${value}`, value % 2 === 0), TAKE, OK, false);
    }
    for (let domain = 0; domain < 10_000; domain++) stats.unknownDomain(`domain-${domain}`, 1);
    // A rule that counts for the first time after the flood still gets its series.
    stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
    const found = all(stats);
    const sum = (end: string) =>
      Object.entries(found).reduce((total, [name, value]) => total + (name.endsWith(end) ? value : 0), 0);
    expect([...stats.series()].length).toBeLessThanOrEqual(1 + 1 + 1000 + 2);
    expect(sum('.total_hits')).toBe(100_001);
    expect(sum('.domain_not_found')).toBe(10_000);
    expect(found['ratelimit.service.rate_limit.d.k.total_hits']).toBe(1);
    expect(found['ratelimit.service.rate_limit.other.other.total_hits']).toBe(100_000 - 1000);
    expect(found['ratelimit.service.rate_limit.other.domain_not_found']).toBe(10_000);
    expect(byCaller.refused).toBe(100_000 - 1000 + 10_000);
  });

  test('rules have a separate budget, and the names in the current policy are rules', () => {
    const { stats } = create(2, ['d.a', 'd.b', 'd.c']);
    for (const name of ['d.a', 'd.b', 'd.c', 'x.1', 'x.2', 'x.3']) {
      stats.add(stats.seriesOf(name, false), TAKE, OK, false);
    }
    expect(Object.keys(all(stats)).filter((name) => name.endsWith('total_hits'))).toEqual([
      'ratelimit.service.rate_limit.d.a.total_hits',
      'ratelimit.service.rate_limit.d.b.total_hits',
      'ratelimit.service.rate_limit.x.1.total_hits',
      'ratelimit.service.rate_limit.x.2.total_hits',
      'ratelimit.service.rate_limit.other.other.total_hits',
    ]);
  });

  test('removed rules make space for new rules, and their last counts are still returned', () => {
    const { stats } = create(2, ['d.a', 'd.b']);
    stats.add(stats.seriesOf('d.a', false), TAKE, OK, false);
    stats.add(stats.seriesOf('d.b', false), TAKE, OK, false);
    stats.setRuleNames(() => ['d.b', 'd.c', 'd.d']);
    stats.add(stats.seriesOf('d.c', false), TAKE, OK, false);
    stats.add(stats.seriesOf('d.d', false), TAKE, OK, false);
    stats.add(stats.seriesOf('d.b', false), TAKE, OK, false);
    const hits = (names: readonly string[]) => names.filter((name) => name.endsWith('total_hits'));
    expect(hits(Object.keys(all(stats)))).toEqual([
      'ratelimit.service.rate_limit.d.b.total_hits',
      'ratelimit.service.rate_limit.d.c.total_hits',
      'ratelimit.service.rate_limit.other.other.total_hits',
    ]);
    const told: string[] = [];
    for (const series of stats.takeSeries()) series.takeDeltas((name) => told.push(name));
    expect(hits(told)).toContain('ratelimit.service.rate_limit.d.a.total_hits');
  });

  test('very long names from callers count as other', () => {
    const { stats } = create(10);
    for (const length of [256, 257, 10_000]) {
      stats.add(stats.seriesOf('x'.repeat(length), true), TAKE, OK, false);
      stats.unknownDomain('y'.repeat(length), 1);
    }
    const prefix = 'ratelimit.service.rate_limit.';
    expect(all(stats)).toMatchObject({
      [`${prefix}${'x'.repeat(256)}.total_hits`]: 1,
      [`${prefix}other.other.total_hits`]: 2,
      [`${prefix}${'y'.repeat(256)}.domain_not_found`]: 1,
      [`${prefix}other.domain_not_found`]: 2,
    });
  });
});

test('a counter that wraps returns the correct delta', () => {
  const series = new StatSeries('p.', ['a']);
  const deltas: number[] = [];
  series.values[0] = 2 ** 53 - 2;
  series.takeDeltas((_name, delta) => deltas.push(delta));
  series.values[0] = 3;
  series.takeDeltas((_name, delta) => deltas.push(delta));
  expect(deltas).toEqual([2 ** 53 - 2, 5]);
});

describe('durations', () => {
  test('are sampled only after the first query, in milliseconds', () => {
    const durations = new DurationStats('M');
    durations.ended(1500);
    expect(durations.takeSamples()).toEqual({ samples: [], count: 0 });
    durations.keepSamples();
    durations.ended(1500);
    durations.ended(20);
    expect(durations.takeSamples()).toEqual({ samples: [1.5, 0.02], count: 2 });
    expect(durations.takeSamples()).toEqual({ samples: [], count: 0 });
  });

  test('in a busy interval are a bounded sample of the whole interval', () => {
    let seed = 1;
    const durations = new DurationStats('M', () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    });
    durations.keepSamples();
    const count = 50_000;
    for (let call = 0; call < count; call++) durations.ended(call * 1000);
    const taken = durations.takeSamples();
    expect(taken.count).toBe(count);
    expect(taken.samples).toHaveLength(MAX_SAMPLES);
    const mean = taken.samples.reduce((sum, value) => sum + value, 0) / MAX_SAMPLES;
    expect(Math.abs(mean - count / 2)).toBeLessThan(count / 20);
  });
});
