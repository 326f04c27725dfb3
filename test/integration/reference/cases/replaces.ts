import { drain, NONE, ok, over, type ReferenceCase, UNLIMITED } from '../case.js';

const TWO_RULES = `
  - key: user
    rate_limit: { name: base, unit: hour, requests_per_unit: 1 }
  - key: plan
    value: gold
    rate_limit: { unit: hour, requests_per_unit: 3, replaces: [{ name: base }] }
`;

/** Names of rules, rules that replace others, and rules without a limit. */
export const REPLACES: readonly ReferenceCase[] = [
  {
    name: 'the name of a rule is in its statuses',
    rules: `
  - key: user
    rate_limit: { name: per-user, unit: hour, requests_per_unit: 2 }
`,
    steps: drain('user=ann', '2/hour', 'per-user'),
  },
  {
    name: 'a rule replaces the named one of the same request',
    rules: TWO_RULES,
    steps: [
      { ask: ['user=ann', 'plan=gold'], get: [NONE, ok('3/hour', 2)] },
      { ask: ['plan=gold', 'user=ann'], get: [ok('3/hour', 1), NONE] },
      { ask: ['user=ann', 'plan=gold'], get: [NONE, ok('3/hour', 0)] },
      { ask: ['user=ann', 'plan=gold'], get: [NONE, over('3/hour')] },
    ],
    stats: {
      'plan_gold.total_hits': 4,
      'plan_gold.over_limit': 1,
      'plan_gold.near_limit': 1,
      'plan_gold.within_limit': 3,
    },
  },
  {
    name: 'a replaced rule keeps its counter for requests without the other',
    rules: TWO_RULES,
    steps: [
      { ask: ['user=ann', 'plan=gold'], get: [NONE, ok('3/hour', 2)] },
      { ask: 'user=ann', get: [ok('1/hour', 0, 'base')] },
      { ask: 'user=ann', get: [over('1/hour', 'base')] },
      { ask: ['user=ann', 'plan=gold'], get: [NONE, ok('3/hour', 1)] },
    ],
  },
  {
    name: 'a rule replaces several others',
    rules: `
  - key: user
    rate_limit: { name: by-user, unit: hour, requests_per_unit: 1 }
  - key: path
    rate_limit: { name: by-path, unit: hour, requests_per_unit: 1 }
  - key: vip
    rate_limit: { unit: hour, requests_per_unit: 4, replaces: [{ name: by-user }, { name: by-path }] }
`,
    steps: [
      { ask: ['user=ann', 'path=/', 'vip=1'], get: [NONE, NONE, ok('4/hour', 3)] },
      { ask: ['user=ann', 'path=/'], get: [ok('1/hour', 0, 'by-user'), ok('1/hour', 0, 'by-path')] },
    ],
  },
  {
    name: 'all rules of one name are replaced',
    rules: `
  - key: user
    rate_limit: { name: common, unit: hour, requests_per_unit: 5 }
  - key: path
    rate_limit: { name: common, unit: hour, requests_per_unit: 6 }
  - key: vip
    rate_limit: { unit: hour, requests_per_unit: 4, replaces: [{ name: common }] }
`,
    steps: [
      { ask: ['user=ann', 'vip=1', 'path=/'], get: [NONE, ok('4/hour', 3), NONE] },
      { ask: ['user=ann', 'path=/'], get: [ok('5/hour', 4, 'common'), ok('6/hour', 5, 'common')] },
    ],
  },
  {
    name: 'the replacing rule may be nested and in shadow mode',
    rules: `
  - key: user
    rate_limit: { name: base, unit: hour, requests_per_unit: 0 }
  - key: app
    descriptors:
      - key: user
        shadow_mode: true
        rate_limit: { unit: hour, requests_per_unit: 0, replaces: [{ name: base }] }
`,
    steps: [
      { ask: ['user=ann', 'app=shop user=ann'], get: [NONE, ok('0/hour', 0)] },
      { ask: 'user=ann', get: [over('0/hour', 'base')] },
    ],
  },
  {
    name: 'an unlimited rule',
    rules: `
  - key: user
    rate_limit: { unlimited: true }
`,
    steps: [{ ask: 'user=ann', times: 3, get: [UNLIMITED] }],
    stats: {},
  },
  {
    name: 'a number next to unlimited is ignored',
    rules: `
  - key: user
    rate_limit: { unlimited: true, requests_per_unit: 1 }
`,
    steps: [{ ask: 'user=ann', times: 3, get: [UNLIMITED] }],
  },
  {
    name: 'unlimited false is a limit like any other',
    rules: `
  - key: user
    rate_limit: { unlimited: false, unit: hour, requests_per_unit: 1 }
`,
    steps: drain('user=ann', '1/hour'),
  },
];
