import { ok, over, type ReferenceCase } from '../case.js';

type Headers = readonly (readonly [string, string])[];

function usual(limit: number, remaining: number): Headers {
  return [
    ['RateLimit-Limit', String(limit)],
    ['RateLimit-Remaining', String(remaining)],
    ['RateLimit-Reset', '<reset>'],
  ];
}

const THREE = `
  - key: five
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: three
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: none
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: never
    rate_limit: { unit: hour, requests_per_unit: 0, name: second-one }
  - key: free
    rate_limit: { unlimited: true }
`;

/** LIMIT_RESPONSE_HEADERS_ENABLED=true. */
export const HEADERS: readonly ReferenceCase[] = [
  {
    name: 'headers of one rule',
    rules: THREE,
    steps: [
      { ask: 'three=1', get: { statuses: [ok('3/hour', 2)], headers: usual(3, 2) } },
      { ask: 'three=1', hits: 2, get: { statuses: [ok('3/hour', 0)], headers: usual(3, 0) } },
      { ask: 'three=1', get: { statuses: [over('3/hour')], headers: usual(3, 0) } },
    ],
  },
  {
    name: 'headers of the rule with the least left',
    rules: THREE,
    steps: [
      {
        ask: ['five=1', 'three=1'],
        get: { statuses: [ok('5/hour', 4), ok('3/hour', 2)], headers: usual(3, 2) },
      },
      { ask: 'five=1', hits: 3, get: { statuses: [ok('5/hour', 1)], headers: usual(5, 1) } },
      {
        ask: ['three=1', 'five=1'],
        get: { statuses: [ok('3/hour', 1), ok('5/hour', 0)], headers: usual(5, 0) },
      },
    ],
  },
  {
    name: 'headers of the rule that refuses',
    rules: THREE,
    steps: [
      { ask: 'three=1', hits: 2, get: { statuses: [ok('3/hour', 1)], headers: usual(3, 1) } },
      {
        ask: ['none=1', 'three=1'],
        get: { statuses: [over('0/hour'), ok('3/hour', 0)], headers: usual(0, 0) },
      },
    ],
  },
  {
    name: 'headers of an override',
    rules: THREE,
    steps: [
      {
        ask: { entries: 'three=1', limit: '8/hour' },
        get: { statuses: [ok('8/hour', 7)], headers: usual(8, 7) },
      },
    ],
  },
  {
    name: 'a quota that is over gives way to a limit that refuses',
    rules: `
  - key: pool
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [
      { ask: 'user=ann', get: { statuses: [ok('1/hour', 0)], headers: usual(1, 0) } },
      {
        ask: ['user=ann', 'pool=1'],
        get: { statuses: [over('1/hour'), over('0/hour')], headers: usual(1, 0) },
      },
      {
        ask: ['pool=1', 'user=ann'],
        get: { statuses: [over('0/hour'), over('1/hour')], headers: usual(1, 0) },
      },
    ],
  },
];

/** Headers with configured names. */
export const NAMED_HEADERS: readonly ReferenceCase[] = [
  {
    name: 'headers have the names that the environment gives',
    rules: THREE,
    steps: [
      {
        ask: 'three=1',
        get: {
          statuses: [ok('3/hour', 2)],
          headers: [
            ['X-Most', '3'],
            ['x-left', '2'],
            ['X-Window-Reset', '<reset>'],
          ],
        },
      },
    ],
  },
];
