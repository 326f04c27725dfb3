/* Long values for every matcher. */
import { seededRandom } from '../../support/limiter/seeded-random.js';
import type { Attack } from '../attack/attack.js';
import { anyValuePolicy, expensivePatterns, keysPolicy, pathPolicy, valuesPolicy } from '../policy-texts.js';
import type { StallCase } from '../stall-case.js';
import { descriptor, ENVOY_BYTES, gzip, MESSAGE_BYTES, request } from '../wire.js';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const octet = (n: number): number => n & 255;

/** Policy files for the cases below. */
export const MATCHER_FILES: Readonly<Record<string, string>> = {
  'paths50.yaml': pathPolicy('paths50', 50, (n) => `/api/v1/*/things${n}`),
  'paths200.yaml': pathPolicy('paths200', 200, (n) => `/api/v1/*/things${n}`),
  'paths1000.yaml': pathPolicy('paths1000', 1000, (n) => `/api/v1/*/things${n}`),
  'deep.yaml': pathPolicy('deep', 100, (n) => `/a/**/b*c*d/**/[x-z]?${n}`),
  'wildcards.yaml': valuesPolicy(
    'wildcards',
    numbers(200).map((n) => `*x${n}*`),
  ),
  'stars.yaml': valuesPolicy(
    'stars',
    numbers(200).map((n) => `a*b*a*c*b*d${n}`),
  ),
  'regexes.yaml': valuesPolicy('regexes', expensivePatterns(), 'value_regex'),
  'ranges.yaml': valuesPolicy(
    'ranges',
    numbers(1000).map((n) => `10.${octet(n >> 8)}.${octet(n)}.0/24`),
    'value_cidr',
  ),
  'exact.yaml': valuesPolicy(
    'exact',
    numbers(1000).map((n) => `value${n}`),
  ),
  'keys.yaml': keysPolicy('keys', 1000),
  'any.yaml': anyValuePolicy('any'),
};

/** Returns random letters a and b, for which an automaton has no cached states. */
function randomLetters(length: number, seed: number): string {
  const random = seededRandom(seed);
  return Array.from({ length }, () => (random() < 0.5 ? 'a' : 'b')).join('');
}

const one = (domain: string, key: string, value: string): Buffer => request(domain, descriptor([key, value]));
const fill = (piece: string, bytes: number): string => piece.repeat(Math.floor(bytes / piece.length));

function calls(messages: readonly Uint8Array[], streams = 4): () => Attack {
  return () => ({ kind: 'grpc', messages, streams });
}

const PATH_58K = `/api/v1/x/${fill('y/', 58_000)}`;
const PATH_4M = `/api/v1/${fill('a/', MESSAGE_BYTES - 64)}`;

export const PATH_CASES: readonly StallCase[] = [
  { name: 'path of 58 KB, 50 rules with *', attack: calls([one('paths50', 'path', PATH_58K)]) },
  { name: 'path of 58 KB, 1,000 rules with *', attack: calls([one('paths1000', 'path', PATH_58K)]) },
  {
    name: 'path of 60 KB in one segment, 1,000 rules',
    attack: calls([one('paths1000', 'path', `/api/v1/${fill('z', ENVOY_BYTES)}/things7`)]),
  },
  {
    name: 'path of 60 KB to normalise, 1,000 rules',
    attack: calls([one('paths1000', 'path', `/api/v1/${fill('%61/.././/%2e/', ENVOY_BYTES)}`)]),
  },
  {
    name: 'path of 60 KB, 100 rules with ** and sets',
    attack: calls([one('deep', 'path', `/a/${fill('bcbd/bcd/', ENVOY_BYTES)}`)]),
  },
  { name: 'path of 4 MB, 1,000 rules with *', attack: calls([one('paths1000', 'path', PATH_4M)], 1) },
  {
    name: 'path of 4 MB in 4 KB of gzip, 200 rules',
    attack: () => ({
      kind: 'grpc',
      messages: [gzip(one('paths200', 'path', PATH_4M))],
      gzip: true,
      streams: 2,
    }),
  },
  {
    name: '64 paths of 60 KB in one call, 1,000 rules',
    attack: calls(
      [request('paths1000', ...numbers(64).map((n) => descriptor(['path', `${PATH_58K}${n}`])))],
      1,
    ),
  },
];

export const VALUE_CASES: readonly StallCase[] = [
  {
    name: '200 values *x*, 60 KB',
    attack: calls([one('wildcards', 'v', fill('x', ENVOY_BYTES))]),
  },
  {
    name: '200 values *x*, 4 MB',
    attack: calls([one('wildcards', 'v', fill('x', MESSAGE_BYTES - 64))], 1),
  },
  {
    name: '200 values a*b*a*c, 60 KB',
    attack: calls([one('stars', 'v', fill('abacb', ENVOY_BYTES))]),
  },
  {
    name: '200 values a*b*a*c, 4 MB',
    attack: calls([one('stars', 'v', fill('ab', MESSAGE_BYTES - 64))], 1),
  },
  {
    name: '10 expensive regular expressions, 3 KB',
    attack: () => ({
      kind: 'grpc',
      messages: numbers(32).map((n) => one('regexes', 'v', randomLetters(3000, n))),
      streams: 32,
      timeout: '1S',
    }),
  },
  {
    name: '10 expensive regular expressions, 60 KB',
    attack: calls(numbers(8).map((n) => one('regexes', 'v', randomLetters(ENVOY_BYTES, n)))),
  },
  {
    name: '10 expensive regular expressions, 1,000 values',
    attack: calls(
      [request('regexes', ...numbers(1000).map((n) => descriptor(['v', randomLetters(1000, n)])))],
      2,
    ),
  },
  {
    name: '1,000 address ranges, 60 KB',
    attack: calls([one('ranges', 'v', fill('1.1.', ENVOY_BYTES))]),
  },
  {
    name: '1,000 address ranges, 60 KB of colons',
    attack: calls([one('ranges', 'v', fill('::', ENVOY_BYTES))]),
  },
  { name: '1,000 exact values, 60 KB', attack: calls([one('exact', 'v', fill('value1', ENVOY_BYTES))]) },
  { name: 'API keys by digest, 60 KB', attack: calls([one('keys', 'api_key', fill('k', ENVOY_BYTES))]) },
  {
    name: 'API keys by digest, 4 MB',
    attack: calls([one('keys', 'api_key', fill('k', MESSAGE_BYTES - 64))], 1),
  },
  { name: 'any value, 60 KB', attack: calls([one('any', 'v', fill('v', ENVOY_BYTES))]) },
  { name: 'any value, 4 MB', attack: calls([one('any', 'v', fill('v', MESSAGE_BYTES - 64))], 1) },
];
