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
    name: 'hits from below the line to beyond the limit',
    rules: rule(20),
    steps: [
      { ask: 'user=ann', hits: 10, get: [ok('20/day', 10)] },
      { ask: 'user=ann', hits: 15, get: [over('20/day')] },
    ],
    stats: { 'user.total_hits': 25, 'user.within_limit': 10, 'user.near_limit': 4, 'user.over_limit': 5 },
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
];
