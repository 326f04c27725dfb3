import { drain, NONE, ok, type ReferenceCase, type Unit } from '../case.js';

const USER = `
  - key: user
    rate_limit: { name: by-user, unit: hour, requests_per_unit: 5 }
`;
const UNITS: readonly Unit[] = ['minute', 'hour', 'day', 'week', 'month', 'year'];

/** Limits in the request. */
export const OVERRIDES: readonly ReferenceCase[] = [
  {
    name: 'an override goes before the rule',
    rules: USER,
    steps: drain({ entries: 'user=ann', limit: '2/hour' }, '2/hour'),
    stats: {
      'user_ann.total_hits': 3,
      'user_ann.within_limit': 2,
      'user_ann.near_limit': 1,
      'user_ann.over_limit': 1,
    },
  },
  {
    name: 'an override needs no rule',
    rules: USER,
    steps: drain({ entries: 'nothing=matches this=one', limit: '2/day' }, '2/day'),
    stats: {
      'nothing_matches.this_one.total_hits': 3,
      'nothing_matches.this_one.within_limit': 2,
      'nothing_matches.this_one.near_limit': 1,
      'nothing_matches.this_one.over_limit': 1,
    },
  },
  {
    name: 'an override needs a known domain',
    steps: [{ ask: { entries: 'user=ann', limit: '0/hour' }, domain: 'override-of-nobody', get: [NONE] }],
  },
  {
    name: 'an override is not replaced by the name of the rule',
    rules: `
  - key: user
    rate_limit: { name: base, unit: hour, requests_per_unit: 5 }
  - key: vip
    rate_limit: { unit: hour, requests_per_unit: 9, replaces: [{ name: base }] }
`,
    steps: [
      { ask: [{ entries: 'user=ann', limit: '7/hour' }, 'vip=1'], get: [ok('7/hour', 6), ok('9/hour', 8)] },
      {
        ask: ['user=eve', { entries: 'vip=2', limit: '7/hour' }],
        get: [ok('5/hour', 4, 'base'), ok('7/hour', 6)],
      },
    ],
  },
  {
    name: 'an override under a pattern with share_threshold is of the value',
    rules: `
  - key: file
    value: f*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
`,
    steps: [
      { ask: { entries: 'file=f1', limit: '2/hour' }, get: [ok('2/hour', 1)] },
      { ask: { entries: 'file=f2', limit: '2/hour' }, get: [ok('2/hour', 1)] },
    ],
  },
  {
    name: 'an override of a descriptor without entries',
    rules: USER,
    differs: 'a descriptor without entries matches no rule in weir; the reference limits it',
    steps: [{ ask: { entries: [], limit: '2/hour' }, get: [NONE], reference: [ok('2/hour', 1)] }],
  },
  {
    name: 'an override of the largest size',
    rules: USER,
    steps: [
      { ask: { entries: 'user=ann', limit: '4294967295/year' }, get: [ok('4294967295/year', 4294967294)] },
    ],
  },
  {
    name: 'overrides of different size keep apart from each other',
    differs: 'in the reference overrides of one unit share a counter whatever their size',
    rules: USER,
    steps: [
      { ask: { entries: 'user=ann', limit: '10/hour' }, get: [ok('10/hour', 9)] },
      {
        ask: { entries: 'user=ann', limit: '20/hour' },
        get: [ok('20/hour', 19)],
        reference: [ok('20/hour', 18)],
      },
      {
        ask: { entries: 'user=ann', limit: '10/hour' },
        get: [ok('10/hour', 8)],
        reference: [ok('10/hour', 7)],
      },
    ],
  },
  {
    name: 'an override keeps apart from the rule',
    differs: 'in the reference an override of the unit of the rule shares its counter',
    rules: USER,
    steps: [
      { ask: 'user=ann', get: [ok('5/hour', 4, 'by-user')] },
      {
        ask: { entries: 'user=ann', limit: '10/hour' },
        get: [ok('10/hour', 9)],
        reference: [ok('10/hour', 8)],
      },
      { ask: 'user=ann', get: [ok('5/hour', 3, 'by-user')], reference: [ok('5/hour', 2, 'by-user')] },
    ],
  },
  ...UNITS.map(
    (unit): ReferenceCase => ({
      name: `an override per ${unit}`,
      rules: USER,
      steps: drain({ entries: 'user=ann', limit: `2/${unit}` }, `2/${unit}`),
    }),
  ),
];
