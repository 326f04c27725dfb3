import { NONE, ok, over, type ReferenceCase } from '../case.js';

/** Returns the request in the form of dynamic metadata. */
function request(domain: string, descriptors: readonly object[], more: object = {}): object {
  return { domain, descriptors, ...more };
}

/** RESPONSE_DYNAMIC_METADATA=true. */
export const METADATA: readonly ReferenceCase[] = [
  {
    name: 'metadata repeats the request',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: ['user=ann path=/', 'user=bob'],
        get: {
          statuses: [NONE, ok('5/hour', 4)],
          metadata: request('metadata-repeats-the-request', [
            { entries: ['user=ann', 'path=/'] },
            { entries: ['user=bob'] },
          ]),
        },
      },
    ],
  },
  {
    name: 'metadata has hits where the request has',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: [{ entries: 'user=ann', hits: 0 }, { entries: 'user=bob', hits: 2 }, 'user=eve'],
        hits: 3,
        get: {
          statuses: [ok('5/hour', 5), ok('5/hour', 3), ok('5/hour', 2)],
          metadata: request(
            'metadata-has-hits-where-the-request-has',
            [
              { entries: ['user=ann'], hitsAddend: 0 },
              { entries: ['user=bob'], hitsAddend: 2 },
              { entries: ['user=eve'] },
            ],
            { hitsAddend: 3 },
          ),
        },
      },
    ],
  },
  {
    name: 'metadata has the override as text',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: { entries: 'user=ann', limit: '7/day' },
        get: {
          statuses: [ok('7/day', 6)],
          metadata: request('metadata-has-the-override-as-text', [
            { entries: ['user=ann'], limit: 'requests_per_unit:7 unit:DAY' },
          ]),
        },
      },
    ],
  },
  {
    name: 'metadata of a rule is in the answer while it passes',
    rules: `
  - key: user
    metadata: { team: red, level: 3, on: true, ratio: 0.5, none: null, list: [a, 1, { b: c }], deep: { er: { still: x } } }
    rate_limit: { unit: hour, requests_per_unit: 1 }
`,
    steps: [
      {
        ask: 'user=ann',
        get: {
          statuses: [ok('1/hour', 0)],
          metadata: request(
            'metadata-of-a-rule-is-in-the-answer-while-it-passes',
            [{ entries: ['user=ann'] }],
            {
              metadata: {
                team: 'red',
                level: 3,
                on: true,
                ratio: 0.5,
                none: null,
                list: ['a', 1, { b: 'c' }],
                deep: { er: { still: 'x' } },
              },
            },
          ),
        },
      },
      {
        ask: 'user=ann',
        get: {
          statuses: [over('1/hour')],
          metadata: request('metadata-of-a-rule-is-in-the-answer-while-it-passes', [
            { entries: ['user=ann'] },
          ]),
        },
      },
    ],
  },
  {
    name: 'metadata of all rules that pass is merged and the first value stays',
    rules: `
  - key: user
    metadata: { who: user, deep: { a: 1, b: 1 } }
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: path
    metadata: { who: path, what: path, deep: { b: 2, c: 2 }, list: [1] }
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: ['user=ann', 'path=/'],
        get: {
          statuses: [ok('5/hour', 4), ok('5/hour', 4)],
          metadata: request(
            'metadata-of-all-rules-that-pass-is-merged-and-the-first-value-stays',
            [{ entries: ['user=ann'] }, { entries: ['path=/'] }],
            { metadata: { who: 'user', what: 'path', deep: { a: 1, b: 1, c: 2 }, list: [1] } },
          ),
        },
      },
    ],
  },
  {
    name: 'merged metadata does not stay in the rule',
    differs:
      'in the reference a merge writes into the loaded configuration, and one answer leaks into later ones',
    rules: `
  - key: user
    metadata: { deep: { a: 1 } }
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: path
    metadata: { deep: { b: 2 } }
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: ['user=ann', 'path=/'],
        get: {
          statuses: [ok('5/hour', 4), ok('5/hour', 4)],
          metadata: request(
            'merged-metadata-does-not-stay-in-the-rule',
            [{ entries: ['user=ann'] }, { entries: ['path=/'] }],
            { metadata: { deep: { a: 1, b: 2 } } },
          ),
        },
      },
      {
        ask: 'user=ann',
        get: {
          statuses: [ok('5/hour', 3)],
          metadata: request('merged-metadata-does-not-stay-in-the-rule', [{ entries: ['user=ann'] }], {
            metadata: { deep: { a: 1 } },
          }),
        },
        reference: {
          statuses: [ok('5/hour', 3)],
          metadata: request('merged-metadata-does-not-stay-in-the-rule', [{ entries: ['user=ann'] }], {
            metadata: { deep: { a: 1, b: 2 } },
          }),
        },
      },
    ],
  },
  {
    name: 'answers contain the metadata of a rule with detailed metrics',
    differs: 'the reference loses the metadata of a rule whose statistics have another name than the rule',
    rules: `
  - key: user
    detailed_metric: true
    metadata: { from: detailed }
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: path
    value_to_metric: true
    metadata: { also: value }
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      {
        ask: ['user=ann', 'path=/'],
        get: {
          statuses: [ok('5/hour', 4), ok('5/hour', 4)],
          metadata: request(
            'answers-contain-the-metadata-of-a-rule-with-detailed-metrics',
            [{ entries: ['user=ann'] }, { entries: ['path=/'] }],
            { metadata: { from: 'detailed', also: 'value' } },
          ),
        },
        reference: {
          statuses: [ok('5/hour', 4), ok('5/hour', 4)],
          metadata: request('answers-contain-the-metadata-of-a-rule-with-detailed-metrics', [
            { entries: ['user=ann'] },
            { entries: ['path=/'] },
          ]),
        },
      },
    ],
  },
];
