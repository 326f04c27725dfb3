/* The expected values come from the mapper of statsd_exporter 0.26.1 with the same rules. */
import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { readMappingFile } from '../../../../src/server/metrics/mapping-file.js';
import {
  defaultMapping,
  escapeMetricName,
  Mapper,
  type StatKind,
} from '../../../../src/telemetry/mapping/mapper.js';
import { cases } from '../../../support/assert/cases.js';

/** Returns the mapper of a valid mapping file. */
function mapperOf(yaml: string): Mapper {
  const { mapping, errors } = readMappingFile('conf.yaml', Buffer.from(yaml));
  if (errors.length > 0) throw new Error(errors.map(formatProblem).join('\n'));
  return new Mapper(mapping);
}

/** Returns `name{label="value"}`, or `dropped`. */
function shown(mapper: Mapper, name: string, kind: StatKind = 'counter'): string {
  const mapped = mapper.map(name, kind);
  if (mapped === undefined) return 'dropped';
  const labels = Object.entries(mapped.labels).map(([label, value]) => `${label}="${value}"`);
  return mapped.name + (labels.length === 0 ? '' : `{${labels.join(',')}}`);
}

const RULES = `
mappings:
- match: "a.*.c"
  name: "first"
  labels: {x1: "$1"}
- match: "a.b.*"
  name: "second"
  labels: {x1: "$1"}
- match: "a.b.c"
  name: "third"
- match: "t.*.*.counter"
  name: "\${2}_total"
  labels: {provider: "$1", both: "\${1}-\${2}", odd: "$1_x", none: "$3", text: "plain"}
- match: "k.*"
  match_metric_type: gauge
  name: "gauges"
- match: "k.*"
  match_metric_type: counter
  name: "counters"
- match: "^re\\\\.(?P<name>\\\\w+)\\\\.(\\\\d+)?\\\\.x"
  match_type: regex
  name: "re_$2"
  labels: {named: "$name", zero: "$0", both: "\${name}_$2", odd: "$2x", dollar: "$$"}
- match: "d.*.drop"
  action: drop
  name: "dropped"
- match: "d\\\\..*"
  match_type: regex
  action: drop
  name: "dropped"
  match_metric_type: observer
`;

describe('rules', () => {
  const mapper = mapperOf(RULES);
  test.each<[StatKind, string, string]>([
    ['counter', 'a.b.c', 'first{x1="b"}'],
    ['counter', 'a.b.x', 'second{x1="x"}'],
    ['counter', 'a.x.c', 'first{x1="x"}'],
    ['counter', 'a..c', 'first{x1=""}'],
    ['counter', 'a.b.c.d', 'a_b_c_d'],
    ['counter', 't.one.two.counter', 'two_total{provider="one",both="one-two",odd="",none="",text="plain"}'],
    [
      'counter',
      't.one.tw-o.counter',
      'tw_o_total{provider="one",both="one-tw-o",odd="",none="",text="plain"}',
    ],
    ['gauge', 'k.x', 'gauges'],
    ['counter', 'k.x', 'counters'],
    ['observer', 'k.x', 'k_x'],
    ['counter', 're.abc.12.x.tail', 're_12{named="abc",zero="re.abc.12.x",both="abc_12",odd="",dollar="$"}'],
    ['counter', 're.abc..x', 're_{named="abc",zero="re.abc..x",both="abc_",odd="",dollar="$"}'],
    ['counter', 'd.x.drop', 'dropped'],
    ['counter', 'd.x.y', 'd_x_y'],
    ['observer', 'd.x.y', 'dropped'],
  ])('%s %s is %s', (kind, name, metric) => {
    expect(shown(mapper, name, kind)).toBe(metric);
  });

  test('without order the most specific glob wins', () => {
    const unordered = mapperOf(`defaults: { glob_disable_ordering: true }${RULES}`);
    expect(shown(unordered, 'a.b.c')).toBe('third');
    expect(shown(unordered, 'a.b.x')).toBe('second{x1="x"}');
    expect(shown(unordered, 'a.x.c')).toBe('first{x1="x"}');
  });

  test.each([
    ['some--odd.9-name.\u00fc', 'some_odd_9_name__'],
    ['9a', '_9a'],
    ['plain_1', 'plain_1'],
  ])('%j is escaped as %s', (name, escaped) => {
    expect(escapeMetricName(name)).toBe(escaped);
  });
});

describe('the default mapping', () => {
  const RULE = 'ratelimit.service.rate_limit';
  const mapper = new Mapper(defaultMapping(false));
  test.each<[string, string]>(cases`
    ${RULE}.d.k.total_hits => ratelimit_service_rate_limit_total_hits{domain="d",key1="k"}
    ${RULE}.d.k.sub.over_limit => ratelimit_service_rate_limit_over_limit{domain="d",key1="k",key2="sub"}
    ${RULE}.d.k.sub.third.fourth.near_limit
      ratelimit_service_rate_limit_near_limit{domain="d",key1="k",key2="sub"}
    ${RULE}.d.k.within_limit => ratelimit_service_rate_limit_within_limit{domain="d",key1="k"}
    ${RULE}.d.k.shadow_mode => ratelimit_service_rate_limit_shadow_mode{domain="d",key1="k"}
    ${RULE}.other.other.total_hits => ratelimit_service_rate_limit_total_hits{domain="other",key1="other"}
    ${RULE}.d.domain_not_found => ratelimit_service_rate_limit_d_domain_not_found
    ${RULE}.d.k.over_limit_with_local_cache => ratelimit_service_rate_limit_d_k_over_limit_with_local_cache
    // The reference adds these to over_limit a second time.
    ${RULE}.d.k.sub.over_limit_with_local_cache
      ratelimit_service_rate_limit_d_k_sub_over_limit_with_local_cache
    ratelimit.service.call.should_rate_limit.redis_error
      ratelimit_service_should_rate_limit_error{err_type="redis_error"}
    ratelimit_server.ShouldRateLimit.total_requests
      ratelimit_service_total_requests{grpc_method="ShouldRateLimit"}
    ratelimit.service.config_load_success => ratelimit_service_config_load_success
    ratelimit.service.config_load_error => ratelimit_service_config_load_error
    ratelimit.service.global_shadow_mode => ratelimit_service_global_shadow_mode
    ratelimit.redis_pool.cx_total => ratelimit_redis_pool_cx_total
  `)('%s is %s', (name, metric) => {
    expect(shown(mapper, name)).toBe(metric);
  });

  test('shows response times in seconds or milliseconds', () => {
    const name = 'ratelimit_server.ShouldRateLimit.response_time';
    const metric = 'ratelimit_service_response_time_seconds';
    expect(mapper.map(name, 'observer')).toMatchObject({
      name: metric,
      scale: 0.001,
      labels: { grpc_method: 'ShouldRateLimit' },
      observer: { kind: 'histogram' },
    });
    expect(new Mapper(defaultMapping(true)).map(name, 'observer')).toMatchObject({ name: metric, scale: 1 });
  });
});
