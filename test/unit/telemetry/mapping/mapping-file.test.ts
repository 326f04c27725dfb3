import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { readMappingFile } from '../../../../src/server/metrics/mapping-file.js';

const read = (yaml: string) => readMappingFile('conf.yaml', Buffer.from(yaml));
const rule = (more: string) => `mappings:\n- match: "a.*"\n  name: n\n  ${more}\n`;

/** Returns the observer options of the first rule. */
function observerOf(yaml: string) {
  const { mapping, errors } = read(yaml);
  expect(errors.map(formatProblem)).toEqual([]);
  return mapping.rules[0]?.observer;
}

describe('a mapping file', () => {
  test('in older spellings loads', () => {
    const { mapping, errors, warnings } = read(`
mappings: # for statsd exporter >= v0.6.0
  - match: "ratelimit_server.*.response_time"
    name: "ratelimit_service_response_time_seconds"
    timer_type: histogram
    labels:
      grpc_method: "$1"
  - match: "ratelimit.service.config_load_success"
    name: "ratelimit_service_config_load_success"
    match_metric_type: counter
  - match: "."
    match_type: "regex"
    action: "drop"
    name: "dropped"
`);
    expect([...errors, ...warnings].map(formatProblem)).toEqual([]);
    expect(mapping.rules).toMatchObject([
      { match: ['ratelimit_server', '*', 'response_time'], observer: { kind: 'histogram' }, drop: false },
      { kind: 'counter', drop: false },
      { match: { source: '.' }, drop: true },
    ]);
  });

  test('sets the type and options of durations, by rule or by default', () => {
    expect(observerOf(rule('help: h'))).toMatchObject({ kind: 'summary', quantiles: [0.5, 0.9, 0.99] });
    expect(observerOf(rule('buckets: [.1, 1e0, 2]\n  timer_type: histogram'))).toEqual({
      kind: 'histogram',
      buckets: [0.1, 1, 2],
    });
    expect(observerOf(rule('observer_type: histogram\n  timer_type: summary'))).toMatchObject({
      kind: 'histogram',
    });
    const defaults = 'defaults: { observer_type: histogram, histogram_options: { buckets: [7] } }\n';
    expect(observerOf(defaults + rule('help: h'))).toEqual({ kind: 'histogram', buckets: [7] });
    const summary =
      'observer_type: summary\n  summary_options: { quantiles: [{ quantile: 0.95, error: 0.01 }], ' +
      'max_age: 30s, age_buckets: 3, buf_cap: 1000 }';
    expect(observerOf(defaults + rule(summary))).toEqual({
      kind: 'summary',
      quantiles: [0.95],
      maxAgeMs: 30_000,
      ageBuckets: 3,
    });
  });

  test('with ttl loads with a warning', () => {
    expect(read(rule('ttl: 1m20s')).warnings.map(formatProblem)).toEqual([
      expect.stringMatching(/^conf\.yaml:4:\d+: mappings\[0\]\.ttl: "ttl" has no effect/),
    ]);
    expect(read(rule('ttl: 0')).warnings).toEqual([]);
  });

  test.each<[string, string, RegExp]>([
    ['an unknown key', rule('labls: {}'), /^conf\.yaml:4:3: .*unknown key "labls"; did you mean "labels"/],
    ['an unknown key at the top', 'mapping: []\n', /^conf\.yaml:1:1: .*did you mean "mappings"/],
    [
      'a key of policies',
      rule('burst: 5'),
      /^conf\.yaml:4:3: .*unknown key "burst"; the keys allowed here are match,/,
    ],
    ['no name', 'mappings:\n- match: a\n', /:2:3: mappings\[0\]\.name: a rule needs a "name"/],
    ['no match', 'mappings:\n- name: a\n', /:2:3: mappings\[0\]\.match: a rule needs a "match"/],
    ['a bad name', 'mappings:\n- { match: a, name: "a-b" }\n', /"a-b" is not a valid metric name/],
    [
      'a bad glob',
      'mappings:\n- { match: "a b", name: n }\n',
      /"a b" is not a valid glob: .*match_type: regex/,
    ],
    ['a glob within a part', 'mappings:\n- { match: "a.b*", name: n }\n', /"a\.b\*" is not a valid glob/],
    [
      'a bad regex',
      'mappings:\n- { match: "(", match_type: regex, name: n }\n',
      /"\(" is not a valid regular expression/,
    ],
    ['a bad label', rule('labels: { "a-b": x }'), /"a-b" is not a valid label name/],
    ['a reserved label', rule('labels: { __name__: x }'), /"__name__" is the label that Prometheus uses for/],
    ['a bad type', rule('match_type: globe'), /"globe" is not one of glob, regex; did you mean "glob"/],
    ['a bad action', rule('action: keep'), /"keep" is not one of map, drop/],
    ['a bad scale', rule('scale: big'), /"scale" must be a number/],
    ['a bad ttl', rule('ttl: soon'), /"soon" is not a valid duration/],
    [
      'options of the other type',
      rule('observer_type: histogram\n  summary_options: {}'),
      /cannot be combined with/,
    ],
    [
      'buckets twice',
      rule('buckets: [1]\n  histogram_options: { buckets: [1] }\n  timer_type: histogram'),
      /is also set in/,
    ],
    ['buckets that fall', rule('buckets: [2, 1]\n  timer_type: histogram'), /must be in ascending order/],
    ['a quantile above 1', rule('quantiles: [{ quantile: 5, error: 0 }]'), /from 0 to 1/],
    ['a list', '- a\n', /must be a mapping with the key "mappings"/],
    ['no YAML', 'mappings: [', /not valid YAML/],
  ])('with %s is refused with a line number and an error message', (_what, yaml, sentence) => {
    const [first = '', ...rest] = read(yaml).errors.map(formatProblem);
    expect(first).toMatch(sentence);
    expect(rest).toEqual([]);
  });
});
