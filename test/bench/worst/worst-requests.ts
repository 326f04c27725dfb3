import { createClientCodec } from '../../../src/codec/client-codec.js';
import type { Descriptor } from '../../../src/codec/messages.js';
import { patternCost } from '../../../src/policy/values/regex-list.js';
import { Wildcard } from '../../../src/policy/values/value-matcher.js';
import { descriptor } from '../../support/policy/decider.js';

/* Defaults of the bounds of a request. */
const MAX_REQUEST_BYTES = 65_536;
const MAX_REGEX_VALUE_BYTES = 4096;
const MAX_MATCH_WORK = 262_144;
/** Units for each pattern or expression that is tried; see docs/policy/matching.md. */
const UNITS_PER_TRY = 64;
/** Number of holds whose token has nearly 8 KiB. */
const HOLDS = 56;

/** Each request replaces these digits of its values, so that no result of matching is cached. */
export const NUMBER = '0000000';

/** Nodes beside the node that the requests match. */
interface Siblings {
  readonly name: string;
  readonly nodes: readonly string[];
  /** Returns the matching work for a value. */
  readonly work: (bytes: number) => number;
  readonly areExpressions?: boolean;
}

/** A legal request with as much work of one kind as the bounds of a request allow. */
export interface WorstRequest {
  readonly name: string;
  readonly policy: 'plain' | 'holds' | 'headers' | 'metadata';
  readonly descriptors: readonly Descriptor[];
  /** `end`: the request ends the holds that these descriptors place. */
  readonly sent: 'grpc' | 'json' | 'end';
}

export type WorstCase = readonly [WorstRequest, Siblings];

const codec = createClientCodec();

/** Returns the name of the domain, without characters that hold tokens would encode. */
export function domainOf([{ policy }, { name }]: WorstCase): string {
  return `${policy}-${name.replaceAll(/\W+/g, '-')}`;
}

/** Returns a request as the bytes of a message, or as the text of a JSON body. */
export function encode(
  sent: WorstRequest['sent'],
  domain: string,
  descriptors: readonly Descriptor[],
): Buffer {
  return sent === 'json'
    ? Buffer.from(JSON.stringify({ domain, descriptors: descriptors.map(({ entries }) => ({ entries })) }))
    : Buffer.from(codec.encodeRequest({ domain, descriptors, hitsAddend: 0 }));
}

function times<Item>(count: number, create: (index: number) => Item): Item[] {
  return Array.from({ length: count }, (_, index) => create(index));
}

/** Creates descriptors from different values. */
type Builder = (value: (index: number) => string) => readonly Descriptor[];

interface RequestOptions {
  readonly policy?: WorstRequest['policy'];
  readonly sent?: WorstRequest['sent'];
  /** Text that is repeated in values. */
  readonly filler?: string;
  /** Maximum length of values; 0: without filler. */
  readonly maxLength?: number;
}

/** Returns a request with values of equal length that are as long as the request allows. */
function request(name: string, build: Builder, options: RequestOptions = {}): WorstRequest {
  const { policy = 'plain', sent = 'grpc', filler = 'x', maxLength = MAX_REQUEST_BYTES } = options;
  const create = (length: number) => build((index) => `${index}-${NUMBER}`.padEnd(length, filler));
  const longestDomain = 'x'.repeat(40);
  let length = 0;
  for (let step = MAX_REQUEST_BYTES / 2; step >= 1; step /= 2) {
    if (length + step > maxLength) continue;
    if (encode(sent, longestDomain, create(length + step)).length <= MAX_REQUEST_BYTES) length += step;
  }
  return { name, policy, descriptors: create(length), sent };
}

/** Returns a builder of `count` descriptors with one value, and with an entry that selects a limit. */
function each(
  count: number,
  key: string,
  selects: readonly string[] = [],
  more: Partial<Descriptor> = {},
): Builder {
  return (value) => times(count, (i) => descriptor([`${key}=${value(i)}`, ...selects], more));
}

function nested(count: number, depth: number): Builder {
  const key = (level: number) => (level === 0 ? 'tenant' : 'level');
  return (value) =>
    times(count, (i) => descriptor(times(depth, (level) => `${key(level)}=${value(i * depth + level)}`)));
}

const PATH = '/%61/./bc/../d//e-';
const OVERRIDE = { limit: { requestsPerUnit: 1_000_000, unit: 1 } };

const TWO_LIMITS = each(128, 'tenant', ['two=']);
const SLOTS = each(HOLDS, 'tenant', ['slot=']);

/** Requests for each of {@link SIBLINGS}. */
const REQUESTS: readonly WorstRequest[] = [
  request('128 short values', each(128, 'tenant'), { maxLength: 0 }),
  request('128 long values', each(128, 'tenant')),
  request('a value of 64 KiB', each(1, 'tenant')),
  request('456 values of 129 bytes', nested(114, 4), { maxLength: 129 }),
  request('1,000 entries', nested(125, 8)),
  request('256 limits', TWO_LIMITS),
  request('16 lists of 16 limits', each(16, 'tenant', ['sixteen='])),
  request('128 overrides', each(128, 'tenant', [], OVERRIDE)),
  request('a path of 64 KiB', each(1, 'path'), { filler: PATH }),
  request('128 paths', each(128, 'path'), { filler: PATH }),
  request('JSON, 1,000 entries', nested(125, 8), { sent: 'json' }),
  request('JSON, escapes', each(1, 'tenant'), { sent: 'json', filler: '"\n\u0001ä' }),
  request(`start of ${HOLDS} holds`, SLOTS, { policy: 'holds', maxLength: 0 }),
  request(`end of ${HOLDS} holds`, SLOTS, { policy: 'holds', maxLength: 0, sent: 'end' }),
  request('headers, 256 limits', TWO_LIMITS, { policy: 'headers' }),
  request('metadata, 128 long values', each(128, 'tenant'), { policy: 'metadata' }),
  request('metadata, 1,000 entries', nested(125, 8), { policy: 'metadata' }),
];

const LIMIT = 'token_bucket: { max_tokens: 1000, tokens_per_fill: 1000, fill_interval: 1s }';

/** Returns nodes with `count` patterns or, if undefined, as many as the bound of work allows for the longest value. */
function siblings(
  name: string,
  field: 'value' | 'value_regex',
  count: number | undefined,
  pattern: (index: number) => string,
): Siblings {
  const areExpressions = field === 'value_regex';
  const units = areExpressions ? Number(patternCost(pattern(0))) : new Wildcard(pattern(0)).unitsPerByte;
  const fitting = Math.floor(MAX_MATCH_WORK / (UNITS_PER_TRY + units * MAX_REGEX_VALUE_BYTES));
  const number = count ?? Math.max(1, fitting);
  const nodes = times(number, (i) => `{ key: tenant, ${field}: '${pattern(i)}', rate_limit: { ${LIMIT} } }`);
  return { name, nodes, work: (bytes) => number * (UNITS_PER_TRY + units * bytes), areExpressions };
}

const PATTERNS = siblings('1,000 patterns', 'value', 1000, (i) => `*other-${i}*`);
const EXPRESSIONS = siblings('1,000 expressions', 'value_regex', 1000, (i) => `(other|else)-${i}-[0-9a-f]+`);
const SIBLINGS: readonly Siblings[] = [
  { name: 'one rule', nodes: [], work: () => 0 },
  {
    name: '10,000 rules',
    nodes: times(10_000, (i) => `{ key: tenant, value: rule-${i}, rate_limit: { ${LIMIT} } }`),
    work: () => 0,
  },
  PATTERNS,
  EXPRESSIONS,
];
const A100 = 'a'.repeat(100);
const COSTLY: readonly Siblings[] = [
  siblings('costly patterns', 'value', undefined, (i) => `*${A100}b${i}${A100}*`),
  siblings('nested repetitions', 'value_regex', undefined, (i) => `(([a-z]+[0-9]*)*-)*x${i}`),
  siblings('counted repetitions', 'value_regex', undefined, (i) => `.*a.{20}b${i}`),
  siblings('a long repetition', 'value_regex', undefined, (i) => `[a-z]{0,400}b${i}`),
  siblings('classes of Unicode', 'value_regex', undefined, (i) => `(\\pL|\\pN|[^b])+x${i}`),
];

/** Returns a request with nearly all matching work that the bound allows, in values of equal length. */
function matchingWork(among: Siblings, values: number): WorstCase {
  let maxLength = MAX_REGEX_VALUE_BYTES;
  while (among.work(maxLength) * values > MAX_MATCH_WORK) maxLength--;
  const build: Builder = () =>
    times(values, (i) => descriptor([`tenant=${`${i}${NUMBER.slice(1)}`.padStart(maxLength, 'a')}`]));
  return [request(`matching work, ${values === 1 ? 'a value' : `${values} values`}`, build), among];
}

/** Returns all requests, each with the siblings in its policy. */
export function worstCases(): readonly WorstCase[] {
  return [
    ...REQUESTS.flatMap((one) =>
      // With patterns, the starts are above the bound of matching work, so that no holds exist.
      SIBLINGS.filter(({ work }) => one.sent !== 'end' || work(0) === 0).map(
        (among) => [one, among] as const,
      ),
    ),
    ...[PATTERNS, EXPRESSIONS].flatMap((among) => [matchingWork(among, 1), matchingWork(among, 3)]),
    ...COSTLY.map((among) => matchingWork(among, 1)),
  ];
}

/** Returns the bound of matching that a request exceeds, with the work that docs/policy/matching.md describes. */
export function exceededBound([{ descriptors }, among]: WorstCase): 'match_work' | 'regex_value' | undefined {
  let units = 0;
  for (const { entries } of descriptors) {
    const [first] = entries;
    // All paths become the same value, whose result is cached.
    if (first?.key !== 'tenant') continue;
    const bytes = Buffer.byteLength(first.value);
    if (among.areExpressions && bytes > MAX_REGEX_VALUE_BYTES) return 'regex_value';
    units += among.work(bytes);
    if (units > MAX_MATCH_WORK) return 'match_work';
  }
  return undefined;
}

function levels(count: number): string {
  const below = count === 1 ? '' : `, descriptors: [${levels(count - 1)}]`;
  return `{ key: level, rate_limit: { ${LIMIT} }${below} }`;
}

/** Returns the text of the policy that decides a request. */
export function worstPolicy(one: WorstCase): string {
  const [{ policy }, { nodes }] = one;
  const families =
    policy === 'headers' ? 'x-ratelimit, retry-after, ratelimit-draft-03, ratelimit' : 'x-ratelimit';
  const limits = (count: number): string =>
    `rate_limits: [${times(count, (i) => `{ name: limit-${i}, ${LIMIT} }`).join(', ')}]`;
  const below = [levels(7), `{ key: two, ${limits(2)} }`, `{ key: sixteen, ${limits(16)} }`];
  if (policy === 'holds')
    below.push('{ key: slot, rate_limit: { concurrency: { max: 1000, expires_after: 10s } } }');
  return [
    `domain: ${domainOf(one)}`,
    `response_headers: [${families}]`,
    `decision_metadata: ${policy === 'metadata'}`,
    'derive:',
    '  - { entry: tenant, from: [path], rules: [{ path: "/**/a/*", value: a }, { path: "/**", value: b }] }',
    'descriptors:',
    ...nodes.map((node) => `  - ${node}`),
    `  - { key: tenant, rate_limit: { ${LIMIT} }, metadata: { team: a }, descriptors: [${below.join(', ')}] }\n`,
  ].join('\n');
}
