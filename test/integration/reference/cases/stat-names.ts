import { ok, over, type ReferenceCase } from '../case.js';

/** Returns the counters of one hit that is allowed and not near the limit. */
function oneHit(...names: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    names.flatMap((name) => [
      [`${name}.total_hits`, 1],
      [`${name}.within_limit`, 1],
    ]),
  );
}

const NINE = 'rate_limit: { unit: hour, requests_per_unit: 9 }';
const HIT = [ok('9/hour', 8)];

/** Names of statistics: from the rule, or from the request if the rule sets that. */
export const STAT_NAMES: readonly ReferenceCase[] = [
  {
    name: 'detailed metric of a key without value',
    rules: `
  - key: user
    detailed_metric: true
    ${NINE}
`,
    steps: [
      { ask: 'user=ann', get: HIT },
      { ask: 'user=bob', get: HIT },
    ],
    stats: oneHit('user_ann', 'user_bob'),
  },
  {
    name: 'detailed metric of a shared pattern names the pattern',
    rules: `
  - key: file
    value: f*
    share_threshold: true
    detailed_metric: true
    ${NINE}
`,
    steps: [{ ask: 'file=f1', get: HIT }],
    stats: oneHit('file_f*'),
  },
  {
    name: 'value to metric on the upper levels',
    rules: `
  - key: route
    value_to_metric: true
    descriptors:
      - key: method
        value_to_metric: true
        descriptors:
          - key: user
            ${NINE}
`,
    steps: [
      { ask: 'route=cart method=GET user=ann', get: HIT },
      { ask: 'route=list method=PUT user=ann', get: HIT },
    ],
    stats: oneHit('route_cart.method_GET.user', 'route_list.method_PUT.user'),
  },
  {
    name: 'value to metric does not split the counter',
    rules: `
  - key: route
    value: r*
    value_to_metric: true
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [
      { ask: 'route=r1 user=ann', get: [ok('1/hour', 0)] },
      { ask: 'route=r2 user=ann', get: [ok('1/hour', 0)] },
      { ask: 'route=r1 user=ann', get: [over('1/hour')] },
    ],
    stats: {
      'route_r1.user.total_hits': 2,
      'route_r1.user.within_limit': 1,
      'route_r1.user.near_limit': 1,
      'route_r1.user.over_limit': 1,
      'route_r2.user.total_hits': 1,
      'route_r2.user.within_limit': 1,
      'route_r2.user.near_limit': 1,
    },
  },
  {
    name: 'colons and bars of values become underscores',
    rules: `
  - key: user
    detailed_metric: true
    ${NINE}
`,
    steps: [
      { ask: 'user=a:b|c', get: HIT },
      { ask: 'user=::1', get: HIT },
    ],
    stats: oneHit('user_a_b_c', 'user___1'),
  },
  {
    name: 'dots of IPv4 addresses become underscores and others stay',
    rules: `
  - key: ip
    detailed_metric: true
    ${NINE}
`,
    steps: [
      { ask: 'ip=10.1.2.3', get: HIT },
      { ask: 'ip=10.1.2.3:80', get: HIT },
      { ask: 'ip=www.example', get: HIT },
    ],
    stats: oneHit('ip_10_1_2_3', 'ip_10_1_2_3_80', 'ip_www.example'),
  },
  {
    name: 'an override is named by what was asked',
    rules: `
  - key: app
    descriptors:
      - key: user
        ${NINE}
`,
    steps: [
      { ask: { entries: 'app=shop user=', limit: '9/hour' }, get: HIT },
      { ask: { entries: 'app=10.0.0.1', limit: '9/hour' }, get: HIT },
    ],
    stats: oneHit('app_shop.user', 'app_10_0_0_1'),
  },
  {
    name: 'an override does not take the name that its values have by rule',
    rules: `
  - key: app
    value: s*
    value_to_metric: true
    descriptors:
      - key: user
        ${NINE}
`,
    steps: [
      { ask: { entries: 'app=shop user=ann', limit: '9/hour' }, get: HIT },
      { ask: { entries: 'app=shop', limit: '9/hour' }, get: HIT },
    ],
    stats: oneHit('app_shop.user_ann', 'app_shop'),
  },
  {
    name: 'the same descriptor twice in one request is counted twice',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: ['user=ann', 'user=ann'], get: [ok('3/hour', 2), ok('3/hour', 1)] },
      { ask: ['user=ann', 'user=ann'], get: [ok('3/hour', 0), over('3/hour')] },
    ],
    stats: { 'user.total_hits': 4, 'user.within_limit': 3, 'user.near_limit': 1, 'user.over_limit': 1 },
  },
];
