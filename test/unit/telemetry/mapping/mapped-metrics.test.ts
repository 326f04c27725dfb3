import { expect, test } from '@jest/globals';
import type { TakeOutcome } from '../../../../src/limiter/bucket-store.js';
import { windowRate } from '../../../../src/limiter/fixed-window.js';
import { readMappingFile } from '../../../../src/server/metrics/mapping-file.js';
import { AggregatedMetrics } from '../../../../src/server/workers/aggregated-metrics.js';
import { SeriesBudget } from '../../../../src/telemetry/bounded-counters.js';
import { FamilyRegistry, familiesText } from '../../../../src/telemetry/family-registry.js';
import { MappedMetrics } from '../../../../src/telemetry/mapping/mapped-metrics.js';
import { defaultMapping, Mapper, type Mapping } from '../../../../src/telemetry/mapping/mapper.js';
import { ReferenceStats } from '../../../../src/telemetry/reference/reference-stats.js';
import { takeItem } from '../../../support/limiter/take-items.js';

const TAKE = takeItem('k', windowRate('minute', 10), { hits: 2 });
const OK: TakeOutcome = {
  overLimit: false,
  remaining: 8,
  waitMicros: 1,
  used: 2,
  uncollectedHits: 0,
  cached: false,
};

function create(
  mapping: Mapping = defaultMapping(false),
  labels: readonly (readonly [string, string])[] = [],
) {
  const stats = new ReferenceStats({
    byRule: new SeriesBudget(100),
    byCaller: new SeriesBudget(100),
    nearLimitRatio: 0.8,
    deniedHitsCount: true,
  });
  let now = 0;
  const mapper = new Mapper(mapping);
  const mapped = new MappedMetrics({ stats, mapper, labels, quantiles: true, now: () => now });
  const registry = new FamilyRegistry();
  registry.addSource(() => mapped.families());
  const advance = (ms: number) => {
    now += ms;
  };
  return { stats, registry, advance };
}

const mappingOf = (yaml: string) => readMappingFile('conf.yaml', Buffer.from(yaml)).mapping;

test('rules with one and with two keys are in one family, and deeper rules in another', async () => {
  const { stats, registry } = create();
  for (const stat of ['d.k', 'd.k.s', 'd.k.s.deep', 'd.k.s.deeper']) {
    stats.add(stats.seriesOf(stat, false), TAKE, OK, false);
  }
  const text = String(await registry.text());
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('ratelimit_service_rate_limit_total_hits{'));
  expect(lines).toEqual([
    'ratelimit_service_rate_limit_total_hits{domain="d",key1="k"} 2',
    'ratelimit_service_rate_limit_total_hits{domain="d",key1="k",key2="s"} 6',
  ]);
  expect(text.match(/^# TYPE ratelimit_service_rate_limit_total_hits counter$/gm)).toHaveLength(1);
  // Counters without a count have no metric.
  expect(text).not.toContain('over_limit');
  expect(text).not.toContain('response_time');
});

test('a second reading shows the sum, not twice the sum', async () => {
  const { stats, registry } = create();
  stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
  String(await registry.text());
  stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
  String(await registry.text());
  expect(String(await registry.text())).toContain(
    'ratelimit_service_rate_limit_total_hits{domain="d",key1="k"} 4\n',
  );
});

test('removed statistics are removed from the metrics', async () => {
  const { stats, registry } = create();
  let active = true;
  stats.setSources({
    pools: () => (active ? [{ name: 'redis_pool', active: 1, opened: 1, closed: 0 }] : []),
    localCache: () => undefined,
  });
  expect(String(await registry.text())).toContain('ratelimit_redis_pool_cx_active 1');
  active = false;
  expect(String(await registry.text())).not.toContain('cx_active');
  active = true;
  expect(String(await registry.text())).toContain('ratelimit_redis_pool_cx_active 1');
});

test('durations become a histogram in seconds, and extra tags become labels', async () => {
  const { stats, registry } = create(defaultMapping(false), [['my-zone', 'eu']]);
  stats.durations('ShouldRateLimit').ended(7000);
  stats.durations('ShouldRateLimit').ended(300);
  const text = String(await registry.text());
  const labels = 'my_zone="eu",grpc_method="ShouldRateLimit"';
  const name = 'ratelimit_service_response_time_seconds';
  expect(text).toContain(`# TYPE ${name} histogram`);
  expect(text).toContain(`${name}_bucket{le="0.005",${labels}} 1\n`);
  expect(text).toContain(`${name}_bucket{le="0.01",${labels}} 2\n`);
  expect(text).toContain(`${name}_bucket{le="+Inf",${labels}} 2\n`);
  expect(text).toContain(`${name}_sum{${labels}} 0.0073`);
  expect(text).toContain(`${name}_count{${labels}} 2`);
});

test('durations without a rule become a summary of the last ten minutes', async () => {
  const { stats, registry, advance } = create(mappingOf('mappings: []'));
  for (let ms = 1; ms <= 100; ms++) stats.durations('M').ended(ms * 1000);
  const text = String(await registry.text());
  expect(text).toContain('# TYPE ratelimit_server_M_response_time summary');
  expect(text).toContain('ratelimit_server_M_response_time{quantile="0.5"} 50\n');
  expect(text).toContain('ratelimit_server_M_response_time{quantile="0.99"} 99\n');
  expect(text).toContain('ratelimit_server_M_response_time_sum 5050\n');
  advance(300_000);
  stats.durations('M').ended(1_000_000);
  expect(String(await registry.text())).toContain('ratelimit_server_M_response_time{quantile="0.5"} 51\n');
  advance(360_000);
  expect(String(await registry.text())).toContain('ratelimit_server_M_response_time{quantile="0.5"} 1000\n');
  advance(3_600_000);
  const old = String(await registry.text());
  expect(old).toMatch(/ratelimit_server_M_response_time\{quantile="0\.5"\} NaN/i);
  expect(old).toContain('ratelimit_server_M_response_time_count 101');
});

test('a name of two types belongs to the first type; scales and drops apply', async () => {
  const { stats, registry } = create(
    mappingOf(`
mappings:
- { match: "ratelimit.service.config_load_success", name: one, scale: 10 }
- { match: "ratelimit.redis_pool.cx_active", name: one }
- { match: "ratelimit.service.config_load_error", name: gone, action: drop }
`),
  );
  stats.configLoaded(true);
  stats.configLoaded(false);
  String(await registry.text());
  stats.setSources({
    pools: () => [{ name: 'redis_pool', active: 1, opened: 0, closed: 0 }],
    localCache: () => undefined,
  });
  const text = String(await registry.text());
  expect(text).toContain('# TYPE one counter\none 10\n');
  expect(text).not.toContain('gone');
});

test('families of several processes are added up, with any labels', async () => {
  const [one, other] = [create(), create()];
  one.stats.add(one.stats.seriesOf('d.k', false), TAKE, OK, false);
  other.stats.add(other.stats.seriesOf('d.k', false), TAKE, OK, false);
  other.stats.add(other.stats.seriesOf('d.k.s', false), TAKE, OK, false);
  for (const { stats } of [one, other]) stats.durations('ShouldRateLimit').ended(1);
  const added = new AggregatedMetrics();
  added.keep(await one.registry.read());
  const text = String(familiesText(added.sum([await other.registry.read()])));
  expect(text).toContain('total_hits{domain="d",key1="k"} 4\n');
  expect(text).toContain('total_hits{domain="d",key1="k",key2="s"} 2\n');
  expect(text).toContain('response_time_seconds_count{grpc_method="ShouldRateLimit"} 2');
});

test('rules that name the same labels in another order add to one series', async () => {
  const { stats, registry } = create(
    mappingOf(`
mappings:
- { match: "ratelimit.service.rate_limit.*.*.total_hits", name: hits, labels: { domain: "$1", key: "$2" } }
- { match: "ratelimit.service.rate_limit.*.*.within_limit", name: hits, labels: { key: "$2", domain: "$1" } }
`),
  );
  stats.add(stats.seriesOf('d.k', false), TAKE, OK, false);
  const text = String(await registry.text());
  expect(text.split('\n').filter((line) => line.startsWith('hits{'))).toHaveLength(1);
});
