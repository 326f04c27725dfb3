import { drain, ok, over, type ReferenceCase } from '../case.js';

const USER = `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 5 }
`;

/** LOCAL_CACHE_SIZE_IN_BYTES over 0: denials are cached until the window ends. */
export const LOCAL_CACHE: readonly ReferenceCase[] = [
  {
    name: 'a repeated denial comes from memory',
    rules: USER,
    steps: [...drain('user=ann', '2/hour'), { ask: 'user=ann', times: 2, get: [over('2/hour')] }],
    stats: {
      'user.total_hits': 5,
      'user.within_limit': 2,
      'user.near_limit': 1,
      'user.over_limit': 3,
      'user.over_limit_with_local_cache': 2,
    },
  },
  {
    name: 'all hits of a remembered refusal count as over',
    rules: USER,
    steps: [
      { ask: 'user=ann', hits: 3, get: [over('2/hour')] },
      { ask: 'user=ann', hits: 7, get: [over('2/hour')] },
    ],
    stats: {
      'user.total_hits': 10,
      'user.near_limit': 1,
      'user.over_limit': 8,
      'user.over_limit_with_local_cache': 7,
    },
  },
  {
    name: 'a rule in shadow mode is remembered and lets through',
    rules: `
  - key: user
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [{ ask: 'user=ann', times: 3, get: [ok('1/hour', 0)] }],
    stats: {
      'user.total_hits': 3,
      'user.within_limit': 1,
      'user.near_limit': 1,
      'user.over_limit': 2,
      'user.over_limit_with_local_cache': 1,
      'user.shadow_mode': 2,
    },
  },
  {
    name: 'an override that was refused is remembered and the rule is not',
    rules: USER,
    steps: [
      { ask: { entries: 'path=/', limit: '1/day' }, get: [ok('1/day', 0)] },
      { ask: { entries: 'path=/', limit: '1/day' }, times: 2, get: [over('1/day')] },
      { ask: 'path=/', get: [ok('5/hour', 4)] },
    ],
    stats: {
      'path_/.total_hits': 3,
      'path_/.within_limit': 1,
      'path_/.near_limit': 1,
      'path_/.over_limit': 2,
      'path_/.over_limit_with_local_cache': 1,
      'path.total_hits': 1,
      'path.within_limit': 1,
    },
  },
  {
    name: 'a quota that was over is remembered and still gives way',
    differs: 'Redis is asked about a whole request unless all of it is remembered',
    rules: `
  - key: pool
    value: a
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: pool
    value: b
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      { ask: ['pool=a', 'pool=b'], get: { statuses: [over('0/hour'), ok('5/hour', 4)], overall: 'OK' } },
      { ask: ['pool=a', 'pool=b'], get: { statuses: [over('0/hour'), ok('5/hour', 3)], overall: 'OK' } },
    ],
    stats: {
      'pool_a.total_hits': 2,
      'pool_a.over_limit': 2,
      'pool_b.total_hits': 2,
      'pool_b.within_limit': 2,
    },
    referenceStats: {
      'pool_a.total_hits': 2,
      'pool_a.over_limit': 2,
      'pool_a.over_limit_with_local_cache': 1,
      'pool_b.total_hits': 2,
      'pool_b.within_limit': 2,
    },
  },
];

/** STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true: only the denying limit counts a denied request. */
export const STOP_INCREMENT: readonly ReferenceCase[] = [
  {
    name: 'a refused request does not count in the other windows',
    rules: USER,
    steps: [
      { ask: ['user=ann', 'path=/'], get: [ok('2/hour', 1), ok('5/hour', 4)] },
      { ask: ['user=ann', 'path=/'], get: [ok('2/hour', 0), ok('5/hour', 3)] },
      { ask: ['user=ann', 'path=/'], times: 3, get: [over('2/hour'), ok('5/hour', 3)] },
      { ask: ['user=bob', 'path=/'], get: [ok('2/hour', 1), ok('5/hour', 2)] },
    ],
  },
  {
    name: 'hits that are refused take nothing',
    differs:
      'the reference counts them in the window that refuses them, so that a smaller request finds no room',
    rules: USER,
    steps: [
      { ask: 'path=/', hits: 4, get: [ok('5/hour', 1)] },
      { ask: [{ entries: 'path=/', hits: 3 }, 'user=ann'], get: [over('5/hour'), ok('2/hour', 2)] },
      { ask: 'path=/', get: [ok('5/hour', 0)], reference: [over('5/hour')] },
      { ask: 'user=ann', get: [ok('2/hour', 1)] },
    ],
  },
  {
    name: 'a rule in shadow mode refuses nothing and so the others count',
    differs:
      'in the reference, a rule in shadow mode that is over its limit stops the counts of all other rules',
    rules: `
  - key: user
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [4, 3, 2].map((left) => ({
      ask: ['user=ann', 'path=/'],
      get: [ok('1/hour', 0), ok('5/hour', left)],
      reference: [ok('1/hour', 0), ok('5/hour', 4)],
    })),
  },
  {
    name: 'a used-up quota does not deny while another quota has hits left, so the other quota counts',
    differs:
      'in the reference a quota that is over stops the count of the others, and they are never used up',
    rules: `
  - key: pool
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: other
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 3 }
`,
    steps: [
      { ask: ['pool=1', 'other=1'], get: [ok('1/hour', 0), ok('3/hour', 2)] },
      ...[1, 0].map((left) => ({
        ask: ['pool=1', 'other=1'],
        get: { statuses: [over('1/hour'), ok('3/hour', left)], overall: 'OK' } as const,
        reference: { statuses: [over('1/hour'), ok('3/hour', 2)], overall: 'OK' } as const,
      })),
      {
        ask: ['pool=1', 'other=1'],
        get: [over('1/hour'), over('3/hour')],
        reference: { statuses: [over('1/hour'), ok('3/hour', 2)], overall: 'OK' },
      },
    ],
  },
];

/** REDIS_PERSECOND=true: limits per second use a separate Redis. */
export const PER_SECOND: readonly ReferenceCase[] = [
  {
    name: 'limits per second and per hour',
    rules: `
  - key: fast
    rate_limit: { unit: second, requests_per_unit: 2 }
  - key: slow
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      { ask: ['fast=1', 'slow=1'], get: [ok('2/second', 1), ok('2/hour', 1)] },
      { ask: ['slow=1', 'fast=1'], get: [ok('2/hour', 0), ok('2/second', 0)] },
      { ask: ['fast=1', 'slow=1'], get: [over('2/second'), over('2/hour')] },
    ],
  },
  {
    name: 'an override per second',
    rules: `
  - key: slow
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: drain({ entries: 'slow=1', limit: '2/second' }, '2/second'),
  },
];

/** Returns a few decisions for settings that must not change them. */
export function plainDecisions(): readonly ReferenceCase[] {
  return [
    {
      name: 'decisions are the same',
      rules: USER,
      steps: [
        ...drain('user=ann', '2/hour'),
        { ask: ['user=bob', 'path=/'], get: [ok('2/hour', 1), ok('5/hour', 4)] },
      ],
      stats: {
        'user.total_hits': 4,
        'user.within_limit': 3,
        'user.near_limit': 1,
        'user.over_limit': 1,
        'path.total_hits': 1,
        'path.within_limit': 1,
      },
    },
  ];
}

/** NEAR_LIMIT_RATIO=0.5. */
export const NEAR_RATIO: readonly ReferenceCase[] = [
  {
    name: 'half of the limit is near',
    rules: USER,
    steps: [
      { ask: 'path=/', hits: 2, get: [ok('5/hour', 3)] },
      { ask: 'path=/', hits: 2, get: [ok('5/hour', 1)] },
      { ask: 'path=/', hits: 2, get: [over('5/hour')] },
    ],
    stats: { 'path.total_hits': 6, 'path.within_limit': 4, 'path.near_limit': 3, 'path.over_limit': 1 },
  },
];
