import { drain, ok, over, type ReferenceCase, type Unit } from '../case.js';

const UNITS: readonly Unit[] = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'];

/** The seven units: each status contains the time until its window ends. */
export const UNITS_CASES: readonly ReferenceCase[] = [
  ...UNITS.map(
    (unit): ReferenceCase => ({
      name: `a limit per ${unit}`,
      rules: `
  - key: user
    rate_limit: { unit: ${unit}, requests_per_unit: 2 }
`,
      steps: drain('user=ann', `2/${unit}`),
    }),
  ),
  {
    name: 'units in any case',
    rules: `
  - key: big
    rate_limit: { unit: HOUR, requests_per_unit: 4 }
  - key: mixed
    rate_limit: { unit: Day, requests_per_unit: 4 }
`,
    steps: [{ ask: ['big=1', 'mixed=1'], get: [ok('4/hour', 3), ok('4/day', 3)] }],
  },
  {
    name: 'windows of all units side by side',
    rules: UNITS.map(
      (unit) => `
  - key: ${unit}
    rate_limit: { unit: ${unit}, requests_per_unit: 9 }
`,
    ).join(''),
    steps: [{ ask: UNITS.map((unit) => `${unit}=1`), get: UNITS.map((unit) => ok(`9/${unit}`, 8)) }],
  },
  {
    name: 'a limit per second is refused within its second',
    rules: `
  - key: user
    rate_limit: { unit: second, requests_per_unit: 3 }
`,
    steps: [
      { ask: 'user=ann', hits: 3, get: [ok('3/second', 0)] },
      { ask: 'user=ann', times: 2, get: [over('3/second')] },
      { ask: 'user=bob', get: [ok('3/second', 2)] },
    ],
  },
  {
    name: 'the same key by two units in two domains',
    rules: `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    files: {
      'second-domain.yaml': `
domain: <domain>-2
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
`,
    },
    steps: [
      ...drain('user=ann', '2/hour'),
      ...drain('user=ann', '2/hour').map((step) => ({
        ...step,
        domain: 'the-same-key-by-two-units-in-two-domains-2',
      })),
    ],
  },
  {
    name: 'a limit without requests per unit is 0',
    rules: `
  - key: user
    rate_limit: { unit: hour }
`,
    steps: [{ ask: 'user=ann', get: [over('0/hour')] }],
  },
];
