/* The most expensive requests within the bounds, and one request above each bound (docs/reference/bounds.md). */
import { DEFAULT_BOUNDS } from '../../src/codec/messages.js';
import { ruleDigest } from '../../src/policy/names/stat-name.js';
import type { StallCase } from '../stall/stall-case.js';
import { inventedToken } from '../support/limiter/hold-tokens.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import type { Attack } from './attacker/attack.js';
import {
  anyValuePolicy,
  holdPolicy,
  keysPolicy,
  pathPolicy,
  severalLimitsPolicy,
  valuesPolicy,
} from './policy-texts.js';
import {
  descriptor,
  EMPTY,
  field,
  filled,
  filledDescriptor,
  gzip,
  http,
  MESSAGE_BYTES,
  overriding,
  request,
} from './wire.js';

const { maxBytes, maxDescriptors, maxEntries } = DEFAULT_BOUNDS;
const MAX_REGEX_VALUE_BYTES = 4096;
const MAX_MATCH_WORK = 262_144;
/** Matching work of a pattern on a value: 64, and 2 for each byte if text between stars is searched. */
const PATTERN_WORK = 64;
const WORK_PER_BYTE = 2;
const PATTERNS = 1000;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** Policies for the requests below. */
export const POLICY_FILES: Readonly<Record<string, string>> = {
  'any.yaml': anyValuePolicy('any'),
  'limits.yaml': severalLimitsPolicy('limits'),
  'paths.yaml': pathPolicy('paths', 1000, (n) => `/api/v1/*/things${n}`),
  'deep.yaml': pathPolicy('deep', 100, (n) => `/a/**/b*c*d/**/[x-z]?${n}`),
  'wildcards.yaml': valuesPolicy(
    'wildcards',
    numbers(PATTERNS).map((n) => `*x${n}*`),
  ),
  'regexes.yaml': valuesPolicy(
    'regexes',
    numbers(10).map((n) => `[ab]*a[ab]{3}c[ab]*d${n}`),
    'value_regex',
  ),
  'ranges.yaml': valuesPolicy(
    'ranges',
    numbers(1000).map((n) => `10.${n >> 8}.${n & 255}.0/24`),
    'value_cidr',
  ),
  'keys.yaml': keysPolicy('keys', 1000),
  'held.yaml': holdPolicy('held'),
};

const one = (domain: string, key: string, value: string): Buffer => request(domain, descriptor([key, value]));
const fill = (piece: string, bytes: number): string => piece.repeat(Math.floor(bytes / piece.length));

/** Returns a request of exactly `bytes` with one value, which repeats `piece`. */
function sized(domain: string, key: string, bytes: number, piece: string): Buffer {
  const missing = bytes - one(domain, key, fill('v', bytes - 64)).length;
  return one(domain, key, fill(piece, bytes).slice(0, bytes - 64 + missing));
}

/** Returns `count` descriptors of one entry. */
function descriptors(count: number, key = 'v', value = 'value'): Buffer[] {
  return numbers(count).map((n) => descriptor([key, `${value}${n}`]));
}

/** Returns random letters a and b, for which an automaton has no cached states. */
function randomLetters(length: number, seed: number): string {
  const random = seededRandom(seed);
  return Array.from({ length }, () => (random() < 0.5 ? 'a' : 'b')).join('');
}

/** Returns a token of about 8,000 characters with holds that do not exist. weir asks the store for each of them. */
function forgedToken(): string {
  const suffix = '%holds';
  const tag = '4:held1:v1:a';
  return inventedToken(
    numbers(100).map(() => ({
      ...{ key: `${tag}${suffix}`, tagLength: tag.length, suffix, lifetimeMillis: 60_000, amount: 1 },
      ...{ fullMicros: 0, rule: ruleDigest('1:v0:'), isLocal: false, freesUnknown: false },
    })),
  );
}

/** The most expensive requests with holds. */
const HELD_REQUESTS: Readonly<Record<string, Buffer>> = {
  '48 new holds': request('held', ...descriptors(48)),
  'eight tokens of 100 holds': request('held', ...numbers(8).map(() => descriptor(['hold', forgedToken()]))),
};

/** The most expensive requests of each kind that weir decides. */
export const WORST_REQUESTS: Readonly<Record<string, Buffer>> = {
  '128 descriptors': request('any', ...descriptors(maxDescriptors)),
  '1,000 entries': request(
    'any',
    ...numbers(125).map((n) =>
      descriptor(...numbers(maxEntries / 125).map((at) => [at === 0 ? 'v' : `k${at}`, `value${n}`] as const)),
    ),
  ),
  '256 limits': request('limits', ...descriptors(maxDescriptors, 'two')),
  '128 overrides': request('any', ...numbers(maxDescriptors).map((n) => overriding(`key${n}`, 'value'))),
  'a value of 64 KiB': sized('any', 'v', maxBytes, 'v'),
  '128 values in 64 KiB': request('any', ...descriptors(maxDescriptors, 'v', 'v'.repeat(490))),
  'invalid UTF-8': request(
    'any',
    field(2, field(1, Buffer.concat([field(1, 'v'), field(2, Buffer.alloc(maxBytes - 64, 0xff))]))),
  ),
  'unknown fields': filled('any', EMPTY.unknown, maxBytes - 64, descriptor(['v', 'value'])),
  'a path of 64 KiB, 1,000 rules': sized('paths', 'path', maxBytes, '/api/v1/x/y'),
  'a path to normalise': one('paths', 'path', `/api/v1/${fill('%61/.././/%2e/', maxBytes - 64)}`),
  'a path, 100 rules with ** and sets': one('deep', 'path', `/a/${fill('bcbd/bcd/', maxBytes - 64)}`),
  'matching work for 1,000 patterns': one(
    'wildcards',
    'v',
    'x'.repeat((MAX_MATCH_WORK / PATTERNS - PATTERN_WORK) / WORK_PER_BYTE),
  ),
  'matching work for ten expressions': request(
    'regexes',
    ...numbers(2).map((n) => descriptor(['v', randomLetters(MAX_REGEX_VALUE_BYTES, n)])),
  ),
  '1,000 address ranges': sized('ranges', 'v', maxBytes, '1.1.'),
  'an API key of 64 KiB': sized('keys', 'api_key', maxBytes, 'k'),
  ...HELD_REQUESTS,
};

/** A request above each bound. weir denies these requests without a decision, because their domains enforce limits. */
const ABOVE_BOUNDS: Readonly<Record<string, Buffer>> = {
  '4 MiB': filled('any', descriptor(['a', 'b']), MESSAGE_BYTES),
  '64 KiB and a byte': sized('any', 'v', maxBytes + 1, 'v'),
  '129 descriptors': request('any', ...descriptors(maxDescriptors + 1)),
  '1,001 entries': request(
    'any',
    descriptor(...numbers(maxEntries + 1).map((n) => [`k${n}`, 'value'] as const)),
  ),
  '258 limits': request('limits', ...descriptors(86, 'three')),
  'a value of 5 KiB before expressions': one('regexes', 'v', randomLetters(5120, 1)),
  'too much matching work': one('wildcards', 'v', fill('x', maxBytes - 64)),
};

/** A compressed message is too large only after it is inflated. */
const INFLATED: Attack = {
  kind: 'grpc',
  messages: [gzip(filledDescriptor('any', EMPTY.entry, MESSAGE_BYTES))],
  gzip: true,
  streams: 8,
};

function json(body: string): Attack {
  return { kind: 'http', port: 'http', request: http('POST', '/json', body), pipelined: 1 };
}

const JSON_DESCRIPTORS = numbers(125)
  .map((n) => `{"entries":[${Array(8).fill(`{"key":"v","value":"${n}"}`).join(',')}]}`)
  .join(',');
const WORST_JSON = json(`{"domain":"any","descriptors":[${JSON_DESCRIPTORS},{},{},{}]}`);

function flood(messages: readonly Buffer[], timeoutMs?: number): Attack {
  return { kind: 'grpc', messages, streams: 4, ...(timeoutMs !== undefined && { timeoutMs }) };
}

/** Each request alone, as fast as weir answers. */
export const REQUEST_CASES: readonly StallCase[] = [
  ...Object.entries(WORST_REQUESTS).map(([name, message]) => ({ name, attacks: () => [flood([message])] })),
  ...Object.entries(ABOVE_BOUNDS).map(([name, message]) => ({
    name: `above a bound: ${name}`,
    attacks: () => [flood([message])],
  })),
  { name: 'above a bound: 4 MiB in 4 KB of gzip', attacks: () => [INFLATED] },
  { name: '/json, 128 descriptors with 1,000 entries', attacks: () => [WORST_JSON] },
  {
    name: '/json, 64 KB of one escaped value',
    attacks: () => [
      json(
        `{"domain":"any","descriptors":[{"entries":[{"key":"v","value":"${fill('\\u0061', maxBytes - 128)}"}]}]}`,
      ),
    ],
  },
  {
    name: 'above a bound: /json, 64 KB of empty entries',
    attacks: () => [json(`{"domain":"any","descriptors":[{"entries":[${fill('{},', maxBytes - 128)}{}]}]}`)],
  },
];

/** Requests at 60 % of a core, in memory and in Redis. */
export const PACED_CASES: readonly StallCase[] = [
  {
    // 50 connections send the most expensive requests, and 50 those above the bounds.
    name: 'all worst requests and all above the bounds',
    isPaced: true,
    attacks: () => [
      { ...flood(Object.values(WORST_REQUESTS), 1000), connections: 46 },
      { ...WORST_JSON, connections: 4 },
      { ...flood(Object.values(ABOVE_BOUNDS), 1000), connections: 44 },
      { ...INFLATED, connections: 6 },
    ],
  },
  {
    name: 'starts and forged ends of holds',
    isPaced: true,
    attacks: () => [{ ...flood(Object.values(HELD_REQUESTS), 1000), connections: 50 }],
  },
];
