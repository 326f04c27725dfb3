import { drain, ok, over, type ReferenceCase } from '../case.js';

function rule(limit: number): string {
  return `
  - key: user
    rate_limit: { unit: day, requests_per_unit: ${limit} }
`;
}

/** Which hits count as near the limit: those above four fifths of it, unless NEAR_LIMIT_RATIO says otherwise. */
export const NEAR_LIMIT: readonly ReferenceCase[] = [
  {
    name: 'one hit at a time',
    rules: rule(10),
    steps: drain('user=ann', '10/day'),
    stats: { 'user.total_hits': 11, 'user.within_limit': 10, 'user.near_limit': 2, 'user.over_limit': 1 },
  },
  {
    name: 'hits from below the line to above it count in part',
    rules: rule(20),
    steps: [
      { ask: 'user=ann', hits: 15, get: [ok('20/day', 5)] },
      { ask: 'user=ann', hits: 3, get: [ok('20/day', 2)] },
    ],
    stats: { 'user.total_hits': 18, 'user.within_limit': 18, 'user.near_limit': 2 },
  },
  {
    name: 'hits exactly up to the line are not near',
    rules: rule(20),
    steps: [{ ask: 'user=ann', hits: 16, get: [ok('20/day', 4)] }],
    stats: { 'user.total_hits': 16, 'user.within_limit': 16 },
  },
  {
    name: 'hits from below the line to beyond the limit',
    rules: rule(20),
    steps: [
      { ask: 'user=ann', hits: 10, get: [ok('20/day', 10)] },
      { ask: 'user=ann', hits: 15, get: [over('20/day')] },
    ],
    stats: { 'user.total_hits': 25, 'user.within_limit': 10, 'user.near_limit': 4, 'user.over_limit': 5 },
  },
  {
    name: 'hits from above the line to beyond the limit',
    rules: rule(20),
    steps: [
      { ask: 'user=ann', hits: 18, get: [ok('20/day', 2)] },
      { ask: 'user=ann', hits: 5, get: [over('20/day')] },
    ],
    stats: { 'user.total_hits': 23, 'user.within_limit': 18, 'user.near_limit': 4, 'user.over_limit': 3 },
  },
  {
    name: 'hits beyond the limit are over alone',
    rules: rule(20),
    steps: [
      { ask: 'user=ann', hits: 20, get: [ok('20/day', 0)] },
      { ask: 'user=ann', hits: 7, get: [over('20/day')] },
    ],
    stats: { 'user.total_hits': 27, 'user.within_limit': 20, 'user.near_limit': 4, 'user.over_limit': 7 },
  },
  {
    name: 'the line is rounded down',
    rules: rule(7),
    steps: drain('user=ann', '7/day'),
    stats: { 'user.total_hits': 8, 'user.within_limit': 7, 'user.near_limit': 2, 'user.over_limit': 1 },
  },
  {
    name: 'of a limit of 1 the only hit is near',
    rules: rule(1),
    steps: drain('user=ann', '1/day'),
    stats: { 'user.total_hits': 2, 'user.within_limit': 1, 'user.near_limit': 1, 'user.over_limit': 1 },
  },
  {
    name: 'asking with 0 beyond the limit counts nothing',
    rules: rule(2),
    steps: [
      { ask: 'user=ann', hits: 3, get: [over('2/day')] },
      { ask: { entries: 'user=ann', hits: 0 }, times: 2, get: [over('2/day')] },
    ],
    stats: { 'user.total_hits': 3, 'user.near_limit': 1, 'user.over_limit': 1 },
  },
  {
    name: 'counters of all values of a key are added up',
    rules: rule(4),
    steps: [
      { ask: ['user=a', 'user=b', 'user=c'], get: [ok('4/day', 3), ok('4/day', 3), ok('4/day', 3)] },
      { ask: 'user=a', hits: 3, get: [ok('4/day', 0)] },
    ],
    stats: { 'user.total_hits': 6, 'user.within_limit': 6, 'user.near_limit': 1 },
  },
];
