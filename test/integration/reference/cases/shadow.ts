import { ok, over, type ReferenceCase } from '../case.js';

const SHADOW_TWO = `
  - key: user
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
`;

/** Rules with shadow_mode. */
export const SHADOW_RULES: readonly ReferenceCase[] = [
  {
    name: 'a rule in shadow mode is never over',
    rules: SHADOW_TWO,
    steps: [
      { ask: 'user=ann', get: [ok('2/hour', 1)] },
      { ask: 'user=ann', get: [ok('2/hour', 0)] },
      { ask: 'user=ann', times: 2, get: [ok('2/hour', 0)] },
    ],
    stats: {
      'user.total_hits': 4,
      'user.within_limit': 2,
      'user.near_limit': 1,
      'user.over_limit': 2,
      'user.shadow_mode': 2,
    },
  },
  {
    name: 'only hits beyond the limit count as shadowed',
    rules: SHADOW_TWO,
    steps: [
      { ask: 'user=ann', hits: 5, get: [ok('2/hour', 0)] },
      { ask: 'user=ann', hits: 4, get: [ok('2/hour', 0)] },
    ],
    stats: { 'user.total_hits': 9, 'user.near_limit': 1, 'user.over_limit': 7, 'user.shadow_mode': 7 },
  },
  {
    name: 'another rule still refuses a request with one in shadow mode',
    rules: `
  - key: user
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [
      { ask: ['user=ann', 'path=/'], get: [ok('0/hour', 0), ok('1/hour', 0)] },
      { ask: ['user=ann', 'path=/'], get: [ok('0/hour', 0), over('1/hour')] },
    ],
  },
];

/** SHADOW_MODE=true, with response headers. */
export const GLOBAL_SHADOW: readonly ReferenceCase[] = [
  {
    name: 'statuses tell the truth and the answer is OK',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [
      { ask: 'user=ann', get: { statuses: [ok('1/hour', 0)], headers: headers(1, 0) } },
      {
        ask: 'user=ann',
        times: 2,
        get: { statuses: [over('1/hour')], overall: 'OK', headers: headers(1, 0) },
      },
    ],
    stats: { 'user.total_hits': 3, 'user.within_limit': 1, 'user.near_limit': 1, 'user.over_limit': 2 },
    counters: { 'ratelimit.service.global_shadow_mode': 2 },
  },
  {
    name: 'global shadow mode does not count for a rule that sets shadow_mode',
    rules: `
  - key: user
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
`,
    steps: [{ ask: 'user=ann', get: { statuses: [ok('0/hour', 0)], headers: headers(0, 0) } }],
    stats: { 'user.total_hits': 1, 'user.over_limit': 1, 'user.shadow_mode': 1 },
    counters: { 'ratelimit.service.global_shadow_mode': 0 },
  },
  {
    name: 'one request is counted once however many descriptors are over',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 0 }
`,
    steps: [
      {
        ask: ['user=ann', 'user=bob'],
        get: { statuses: [over('0/hour'), over('0/hour')], overall: 'OK', headers: headers(0, 0) },
      },
    ],
    counters: { 'ratelimit.service.global_shadow_mode': 1 },
  },
  {
    name: 'quotas that are all over are let through',
    rules: `
  - key: user
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
`,
    steps: [{ ask: 'user=ann', get: { statuses: [over('0/hour')], overall: 'OK', headers: headers(0, 0) } }],
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
