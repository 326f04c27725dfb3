import { ok, over, type ReferenceCase } from '../case.js';

const TWO_QUOTAS = `
  - key: pool
    value: small
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: pool
    value: large
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 3 }
`;

/** Rules with quota_mode: they deny a request only if all of those that it matches are over the limit. */
export const QUOTA_RULES: readonly ReferenceCase[] = [
  {
    name: 'two quotas refuse when both are over and both count',
    rules: TWO_QUOTAS,
    steps: [
      { ask: ['pool=small', 'pool=large'], get: [ok('1/hour', 0), ok('2/hour', 1)] },
      {
        ask: ['pool=small', 'pool=large'],
        get: { statuses: [over('1/hour'), ok('2/hour', 0)], overall: 'OK' },
      },
      { ask: ['pool=small', 'pool=large'], get: [over('1/hour'), over('2/hour')] },
    ],
  },
  {
    name: 'a limit that is over refuses whatever the quotas say',
    rules: TWO_QUOTAS,
    steps: [
      { ask: 'user=ann', hits: 3, get: [ok('3/hour', 0)] },
      { ask: ['pool=large', 'user=ann'], get: [ok('2/hour', 1), over('3/hour')] },
    ],
  },
  {
    name: 'a quota in shadow mode is never over',
    rules: `
  - key: pool
    quota_mode: true
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
`,
    steps: [{ ask: 'pool=x', get: [ok('0/hour', 0)] }],
    stats: { 'pool.total_hits': 1, 'pool.over_limit': 1, 'pool.shadow_mode': 1 },
  },
  {
    name: 'an override is no quota',
    rules: TWO_QUOTAS,
    steps: [
      {
        ask: [{ entries: 'pool=small', limit: '0/hour' }, 'pool=large'],
        get: [over('0/hour'), ok('2/hour', 1)],
      },
    ],
  },
];

/** QUOTA_MODE=true, with response headers: every rule is a quota. */
export const GLOBAL_QUOTA: readonly ReferenceCase[] = [
  {
    name: 'every limit is a quota',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    steps: [
      {
        ask: ['user=ann', 'path=/'],
        get: { statuses: [ok('1/hour', 0), ok('2/hour', 1)], headers: headers(1, 0) },
      },
      {
        ask: ['user=ann', 'path=/'],
        get: { statuses: [over('1/hour'), ok('2/hour', 0)], overall: 'OK', headers: headers(1, 0) },
      },
      {
        ask: ['user=ann', 'path=/'],
        get: { statuses: [over('1/hour'), over('2/hour')], headers: headers(1, 0) },
      },
    ],
  },
  {
    name: 'overrides are quotas too',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: [{ entries: 'user=ann', limit: '0/hour' }, 'user=bob'],
        get: { statuses: [over('0/hour'), ok('5/hour', 4)], overall: 'OK', headers: headers(0, 0) },
      },
    ],
  },
];

/** QUOTA_MODE=true and SHADOW_MODE=true. */
export const QUOTA_AND_SHADOW: readonly ReferenceCase[] = [
  {
    name: 'quotas that are all over are let through by the global shadow mode',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 0 }
`,
    steps: [{ ask: 'user=ann', get: { statuses: [over('0/hour')], overall: 'OK' } }],
    counters: { 'ratelimit.service.global_shadow_mode': 1 },
  },
];

function headers(limit: number, remaining: number): [string, string][] {
  return [
    ['RateLimit-Limit', String(limit)],
    ['RateLimit-Remaining', String(remaining)],
    ['RateLimit-Reset', '<reset>'],
  ];
}
