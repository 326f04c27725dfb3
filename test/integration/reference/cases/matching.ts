import { drain, NONE, ok, over, type ReferenceCase } from '../case.js';

/** The rule that a descriptor matches: nesting, values, defaults. */
export const MATCHING: readonly ReferenceCase[] = [
  {
    name: 'a key with its value finds the rule of both',
    rules: `
  - key: plan
    value: gold
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: drain('plan=gold', '3/hour'),
    stats: {
      'plan_gold.total_hits': 4,
      'plan_gold.over_limit': 1,
      'plan_gold.near_limit': 1,
      'plan_gold.within_limit': 3,
    },
  },
  {
    name: 'a key without value limits each value on its own',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [...drain('user=ann', '2/hour'), ...drain('user=bob', '2/hour')],
    stats: { 'user.total_hits': 6, 'user.over_limit': 2, 'user.near_limit': 2, 'user.within_limit': 4 },
  },
  {
    name: 'a rule with the value takes precedence over the rule without a value',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: user
    value: root
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      { ask: 'user=root', get: [ok('5/hour', 4)] },
      { ask: 'user=ann', get: [ok('2/hour', 1)] },
    ],
    stats: {
      'user.total_hits': 1,
      'user.within_limit': 1,
      'user_root.total_hits': 1,
      'user_root.within_limit': 1,
    },
  },
  {
    name: 'a rule on the second level needs both entries',
    rules: `
  - key: app
    value: shop
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'app=shop', times: 3, get: [NONE] },
      { ask: 'user=ann', times: 3, get: [NONE] },
      ...drain('app=shop user=ann', '2/hour'),
    ],
    stats: {
      'app_shop.user.total_hits': 3,
      'app_shop.user.over_limit': 1,
      'app_shop.user.near_limit': 1,
      'app_shop.user.within_limit': 2,
    },
  },
  {
    name: 'an unknown domain is OK without a limit',
    steps: [{ ask: 'user=ann', domain: 'nobody-has-this-one', get: [NONE] }],
    counters: { 'ratelimit.service.rate_limit.nobody-has-this-one.domain_not_found': 1 },
  },
  {
    name: 'every descriptor of an unknown domain is counted',
    steps: [
      { ask: ['user=ann', 'user=bob', 'user=eve'], domain: 'a-second-unknown-one', get: [NONE, NONE, NONE] },
    ],
    counters: { 'ratelimit.service.rate_limit.a-second-unknown-one.domain_not_found': 3 },
  },
  {
    name: 'a descriptor without entries finds nothing',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [{ ask: { entries: [] }, times: 2, get: [NONE] }],
  },
  {
    name: 'one descriptor over its limit makes the answer OVER_LIMIT',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 9 }
`,
    steps: [
      { ask: ['user=ann', 'path=/'], get: [ok('1/hour', 0), ok('9/hour', 8)] },
      { ask: ['user=ann', 'path=/'], get: [over('1/hour'), ok('9/hour', 7)] },
      { ask: 'path=/', get: [ok('9/hour', 6)] },
    ],
  },
  {
    name: 'a rule named a b is not found by entry a with value b',
    differs:
      'the reference joins key and value with an underscore, so that other callers share a rule by accident',
    rules: `
  - key: zone_eu
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'zone=eu', get: [NONE], reference: [ok('2/hour', 1)] },
      { ask: 'zone_eu=x', get: [ok('2/hour', 1)] },
    ],
  },
  {
    name: 'counters of descriptors that read alike when joined are apart',
    differs: 'the reference joins keys and values with an underscore, so that these two share a counter',
    rules: `
  - key: x
    rate_limit: { unit: hour, requests_per_unit: 5 }
    descriptors:
      - key: b
        rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      { ask: 'x=1_b_2', get: [ok('5/hour', 4)] },
      { ask: 'x=1 b=2', get: [ok('5/hour', 4)], reference: [ok('5/hour', 3)] },
    ],
  },
  {
    name: 'values with dots slashes colons spaces and letters of all kinds',
    rules: `
  - key: what
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      ...['a.b', '/x/y?z=1', '::1', 'ein Wort', 'żółw', '🦆', '*', '|', '%00'].map((value) => ({
        ask: { entries: [['what', value] as const] },
        get: [ok('2/hour', 1)],
      })),
    ],
  },
];
