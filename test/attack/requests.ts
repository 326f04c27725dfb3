/* The most expensive requests within the bounds, and one request above each bound (docs/reference/bounds.md). */
import { DEFAULT_BOUNDS } from '../../src/codec/messages.js';
import { ruleDigest } from '../../src/policy/names/stat-name.js';
import { inventedToken } from '../support/limiter/hold-tokens.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import type { Attack } from './attacker/attack.js';
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

/** Domain of the innocent caller. */
export const INNOCENT = 'innocent';

/** Returns a policy that derives `group` from a path with `count` rules, and limits each group. */
function pathPolicy(domain: string, count: number, pattern: (n: number) => string): string {
  const rules = numbers(count).map((n) => `      - { path: ${JSON.stringify(pattern(n))}, value: g${n} }`);
  return `domain: ${domain}
derive:
  - entry: group
    from: [path]
    rules:
${rules.join('\n')}
descriptors:
  - key: group
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
`;
}

/** Returns a policy with a node for each of these values. */
function valuesPolicy(
  domain: string,
  values: readonly string[],
  matcher: 'value' | 'value_cidr' | 'value_regex' = 'value',
): string {
  const nodes = values.map(
    (value, n) => `  - key: v
    ${matcher}: ${JSON.stringify(value)}
    rate_limit: { name: r${n}, unit: minute, requests_per_unit: 1000000 }`,
  );
  return `domain: ${domain}\ndescriptors:\n${nodes.join('\n')}\n`;
}

/** Returns a policy that derives the tenant from the digest of an API key. */
function keysPolicy(domain: string, count: number): string {
  const digests = numbers(count).map((n) => `        ${n.toString(16).padStart(64, '0')}: tenant${n}`);
  return `domain: ${domain}
derive:
  - entry: tenant
    from: [api_key]
    sha256:
${digests.join('\n')}
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
`;
}

/** Returns a policy with a separate limit for each value of `v`. */
function anyValuePolicy(domain: string): string {
  return `domain: ${domain}
descriptors: [{ key: v, rate_limit: { unit: minute, requests_per_unit: 1000000 } }]
`;
}

/** Returns a policy with two limits for each value of `two`, and three for each value of `three`. */
function severalLimitsPolicy(domain: string): string {
  const node = (key: string, count: number): string => {
    const limits = numbers(count).map(
      (n) => `      - { name: ${key}${n}, unit: minute, requests_per_unit: ${1_000_000 + n} }`,
    );
    return `  - key: ${key}\n    rate_limits:\n${limits.join('\n')}`;
  };
  return `domain: ${domain}\ndescriptors:\n${node('two', 2)}\n${node('three', 3)}\n`;
}

/** Returns a policy that limits the concurrent requests for each value of `v`. */
function holdPolicy(domain: string): string {
  return `domain: ${domain}
descriptors: [{ key: v, rate_limit: { concurrency: { max: 1000000 } } }]
`;
}

/** Tokens in the only bucket that the requests of a burst share. It refills too slowly for a test. */
export const BURST_TOKENS = 100;

/** Policies of the attacked server. */
export const POLICY_FILES: Readonly<Record<string, string>> = {
  // The innocent caller never reaches its limit.
  'innocent.yaml': `domain: ${INNOCENT}
descriptors: [{ key: caller, rate_limit: { unit: day, requests_per_unit: 4000000000 } }]
`,
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
  'burst.yaml': `domain: burst
on_store_failure: deny
descriptors:
  - { key: shared, rate_limit: { token_bucket: { max_tokens: ${BURST_TOKENS}, fill_interval: 1h } } }
  - { key: v, rate_limit: { unit: minute, requests_per_unit: 1000000 } }
`,
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
      ...{ key: `${tag}${suffix}`, hashTagLength: tag.length, suffix, lifetimeMillis: 60_000, amount: 1 },
      ...{ fullAtMicros: 0, rule: ruleDigest('1:v0:'), isLocal: false, freesUnknown: false },
    })),
  );
}

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
  '48 new holds': request('held', ...descriptors(48)),
  'eight tokens of 100 holds': request('held', ...numbers(8).map(() => descriptor(['hold', forgedToken()]))),
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
  return { kind: 'http', request: http('POST', '/json', body), pipelined: 1 };
}

const JSON_DESCRIPTORS = numbers(125)
  .map((n) => `{"entries":[${Array(8).fill(`{"key":"v","value":"${n}"}`).join(',')}]}`)
  .join(',');

function flood(message: Buffer): Attack {
  return { kind: 'grpc', messages: [message], streams: 4 };
}

/** Attacks with a single kind of request, by their names. */
export const REQUEST_ATTACKS: Readonly<Record<string, Attack>> = {
  ...Object.fromEntries(Object.entries(WORST_REQUESTS).map(([name, message]) => [name, flood(message)])),
  ...Object.fromEntries(
    Object.entries(ABOVE_BOUNDS).map(([name, message]) => [`above a bound: ${name}`, flood(message)]),
  ),
  'above a bound: 4 MiB in 4 KB of gzip': INFLATED,
  '/json, 128 descriptors with 1,000 entries': json(
    `{"domain":"any","descriptors":[${JSON_DESCRIPTORS},{},{},{}]}`,
  ),
  '/json, 64 KB of one escaped value': json(
    `{"domain":"any","descriptors":[{"entries":[{"key":"v","value":"${fill('\\u0061', maxBytes - 128)}"}]}]}`,
  ),
  'above a bound: /json, 64 KB of empty entries': json(
    `{"domain":"any","descriptors":[{"entries":[${fill('{},', maxBytes - 128)}{}]}]}`,
  ),
};
