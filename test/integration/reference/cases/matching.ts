import { drain, NONE, ok, over, type ReferenceCase } from '../case.js';

/** Which rule a descriptor finds: nesting, values, defaults. */
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
    name: 'another value of a key that has only values finds nothing',
    rules: `
  - key: plan
    value: gold
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [{ ask: 'plan=tin', times: 5, get: [NONE] }],
    stats: {},
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
    name: 'the empty value is a value like any other of a key without one',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [...drain('user=', '2/hour'), { ask: 'user=ann', get: [ok('2/hour', 1)] }],
  },
  {
    name: 'a rule with the value goes before the one without',
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
    name: 'a value without rate_limit is exempt from the rule of its key',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: user
    value: probe
`,
    steps: [{ ask: 'user=probe', times: 3, get: [NONE] }, ...drain('user=ann', '1/hour')],
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
    name: 'entries count in their order',
    rules: `
  - key: app
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'user=ann app=shop', get: [NONE] },
      { ask: 'app=shop user=ann', get: [ok('2/hour', 1)] },
    ],
  },
  {
    name: 'a descriptor longer than the rule finds nothing',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [{ ask: 'user=ann path=/', times: 3, get: [NONE] }],
    stats: {},
  },
  {
    name: 'a rule of an inner node applies where the descriptor ends there',
    rules: `
  - key: app
    rate_limit: { unit: hour, requests_per_unit: 4 }
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'app=shop', get: [ok('4/hour', 3)] },
      { ask: 'app=shop user=ann', get: [ok('2/hour', 1)] },
      { ask: 'app=shop user=ann more=1', get: [NONE] },
      { ask: 'app=shop other=1', get: [NONE] },
    ],
  },
  {
    name: 'an exact value closes the way to the default beside it',
    rules: `
  - key: app
    value: shop
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 7 }
  - key: app
    descriptors:
      - key: path
        rate_limit: { unit: hour, requests_per_unit: 9 }
`,
    steps: [
      { ask: 'app=shop path=/', get: [NONE] },
      { ask: 'app=blog path=/', get: [ok('9/hour', 8)] },
      { ask: 'app=shop user=ann', get: [ok('7/hour', 6)] },
    ],
  },
  {
    name: 'counters of a nested rule are kept for all its values',
    rules: `
  - key: app
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [
      ...drain('app=a user=x', '1/hour'),
      ...drain('app=b user=x', '1/hour'),
      ...drain('app=a user=y', '1/hour'),
    ],
  },
  {
    name: 'keys and values are told apart by case',
    rules: `
  - key: User
    value: Ann
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'user=Ann', get: [NONE] },
      { ask: 'User=ann', get: [NONE] },
      { ask: 'User=Ann', get: [ok('2/hour', 1)] },
    ],
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
    name: 'each descriptor gets its own status in the order of the request',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: path
    rate_limit: { unit: day, requests_per_unit: 7 }
`,
    steps: [
      { ask: ['user=ann', 'none=1', 'path=/'], get: [ok('5/hour', 4), NONE, ok('7/day', 6)] },
      { ask: ['path=/', 'user=ann'], get: [ok('7/day', 5), ok('5/hour', 3)] },
    ],
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
    name: 'hits of a refused request count in all its windows',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: ['user=ann', 'path=/'], get: [over('0/hour'), ok('2/hour', 1)] },
      { ask: ['user=ann', 'path=/'], get: [over('0/hour'), ok('2/hour', 0)] },
      { ask: 'path=/', get: [over('2/hour')] },
    ],
  },
  {
    name: 'the same descriptor twice in one request counts twice',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: ['user=ann', 'user=ann'], get: [ok('3/hour', 2), ok('3/hour', 1)] },
      { ask: ['user=ann', 'user=ann'], get: [ok('3/hour', 0), over('3/hour')] },
    ],
  },
  {
    name: 'a limit of 0 refuses everything',
    rules: `
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 0 }
`,
    steps: [{ ask: 'user=ann', times: 2, get: [over('0/minute')] }],
    stats: { 'user.total_hits': 2, 'user.over_limit': 2 },
  },
  {
    name: 'five levels of nesting',
    rules: `
  - key: a
    descriptors:
      - key: b
        value: two
        descriptors:
          - key: c
            descriptors:
              - key: d
                value: four
                descriptors:
                  - key: e
                    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: 'a=1 b=two c=3 d=four', get: [NONE] },
      ...drain('a=1 b=two c=3 d=four e=5', '2/hour'),
      { ask: 'a=1 b=2 c=3 d=four e=5', get: [NONE] },
    ],
    stats: {
      'a.b_two.c.d_four.e.total_hits': 3,
      'a.b_two.c.d_four.e.over_limit': 1,
      'a.b_two.c.d_four.e.near_limit': 1,
      'a.b_two.c.d_four.e.within_limit': 2,
    },
  },
  {
    name: 'the same key on two levels',
    rules: `
  - key: part
    value: one
    descriptors:
      - key: part
        value: two
        rate_limit: { unit: hour, requests_per_unit: 4 }
`,
    steps: [
      { ask: 'part=one part=two', get: [ok('4/hour', 3)] },
      { ask: 'part=two part=one', get: [NONE] },
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
  {
    name: 'a long value has a counter of its own',
    rules: `
  - key: what
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: `what=${'x'.repeat(3000)}`, get: [ok('2/hour', 1)] },
      { ask: `what=${'x'.repeat(3000)}`, get: [ok('2/hour', 0)] },
      { ask: `what=${'x'.repeat(3001)}`, get: [ok('2/hour', 1)] },
    ],
  },
];
