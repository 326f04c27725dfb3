import { NONE, ok, over, type ReferenceCase, UNLIMITED } from '../case.js';

const TEN = `
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 10 }
`;

/** Hits addends of the request and of its descriptors. */
export const HITS: readonly ReferenceCase[] = [
  {
    name: 'the hits addend of the request counts for each descriptor',
    rules: TEN,
    steps: [
      { ask: ['user=ann', 'user=bob'], hits: 4, get: [ok('10/hour', 6), ok('10/hour', 6)] },
      { ask: 'user=ann', hits: 6, get: [ok('10/hour', 0)] },
      { ask: 'user=ann', hits: 1, get: [over('10/hour')] },
    ],
    stats: { 'user.total_hits': 15, 'user.over_limit': 1, 'user.near_limit': 2, 'user.within_limit': 14 },
  },
  {
    name: 'a hits addend in a descriptor takes precedence over the value in the request',
    rules: TEN,
    steps: [
      {
        ask: [{ entries: 'user=ann', hits: 3 }, 'user=bob'],
        hits: 5,
        get: [ok('10/hour', 7), ok('10/hour', 5)],
      },
    ],
  },
  {
    name: 'a descriptor hits addend of 0 asks and takes nothing',
    rules: TEN,
    steps: [
      { ask: { entries: 'user=ann', hits: 0 }, times: 3, get: [ok('10/hour', 10)] },
      { ask: 'user=ann', get: [ok('10/hour', 9)] },
      { ask: { entries: 'user=ann', hits: 0 }, get: [ok('10/hour', 9)] },
    ],
    stats: { 'user.total_hits': 1, 'user.within_limit': 1 },
  },
  {
    name: 'the most hits that a request may name',
    rules: TEN,
    steps: [
      { ask: 'user=ann', hits: 2 ** 32 - 1, get: [over('10/hour')] },
      { ask: 'user=ann', get: [over('10/hour')] },
    ],
  },
  {
    name: 'more hits in a descriptor than a request may name',
    rules: TEN,
    steps: [
      { ask: { entries: 'user=ann', hits: 2 ** 40 }, times: 2, get: [over('10/hour')] },
      { ask: 'user=ann', get: [over('10/hour')] },
    ],
  },
  {
    name: 'hits of 2 to the 63 are refused and give nothing back',
    differs: 'the reference hands them to Redis as a negative number, and the caller has given itself tokens',
    notReference: true,
    rules: TEN,
    steps: [
      { ask: 'user=ann', hits: 4, get: [ok('10/hour', 6)] },
      { ask: { entries: 'user=ann', hits: 2 ** 63 }, get: [over('10/hour')] },
      { ask: { entries: 'user=ann', hits: 2 ** 63 + 2 ** 12 }, get: [over('10/hour')] },
      { ask: 'user=ann', get: [over('10/hour')] },
    ],
  },
  {
    name: 'hits that add up to more than a counter holds stay refused',
    differs: 'the counter of the reference overflows, and the key answers errors until its window ends',
    notReference: true,
    rules: TEN,
    steps: [
      { ask: { entries: 'user=ann', hits: 2 ** 62 }, times: 5, get: [over('10/hour')] },
      { ask: 'user=ann', get: [over('10/hour')] },
    ],
  },
  {
    name: 'a limit as large as the format allows',
    rules: `
  - key: user
    rate_limit: { unit: day, requests_per_unit: 4294967295 }
`,
    steps: [
      { ask: 'user=ann', get: [ok('4294967295/day', 4294967294)] },
      { ask: 'user=ann', hits: 2 ** 32 - 2, get: [ok('4294967295/day', 0)] },
      { ask: 'user=ann', get: [over('4294967295/day')] },
    ],
  },
  {
    name: 'negative hits give back what was taken and no more',
    differs: 'is_negative_hits is younger than this version of the reference, which counts it as hits',
    rules: TEN,
    steps: [
      { ask: 'user=ann', hits: 4, get: [ok('10/hour', 6)] },
      {
        ask: { entries: 'user=ann', hits: 3, negative: true },
        get: [ok('10/hour', 9)],
        reference: [ok('10/hour', 3)],
      },
      {
        ask: { entries: 'user=ann', hits: 9, negative: true },
        get: [ok('10/hour', 10)],
        reference: [over('10/hour')],
      },
    ],
  },
  {
    name: 'hits of what has no limit are counted nowhere',
    rules: `
  - key: free
    rate_limit: { unlimited: true }
`,
    steps: [{ ask: ['free=1', 'none=1'], hits: 1000, times: 2, get: [UNLIMITED, NONE] }],
    stats: {},
  },
];
