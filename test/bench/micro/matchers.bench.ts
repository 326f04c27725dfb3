/*
 * Matching addresses and regular expressions. The first case is the baseline for the others. To run it: `node
 * build/test/bench/micro/matchers.bench.js [part of a name …]`.
 */
import { DEFAULT_MAX_MATCH_WORK, MatchWork } from '../../../src/policy/match-work.js';
import { patternCost, RegexList } from '../../../src/policy/values/regex-list.js';
import { entries, policyOf } from '../../support/policy/policies.js';
import { type Measurement, type MicroCase, runCases } from './measure.js';

const RULE = 'rate_limit: { unit: second, requests_per_unit: 10 }';
const VALUES = 1000;

/** Matches entries with values from `textOf` below a tenant. `nodes` are the values of the policy nodes. */
function matching(nodes: readonly string[], textOf: (i: number) => string): MicroCase {
  return () => {
    const lines = nodes.map((node) => `      - { key: k, ${node}, ${RULE} }`).join('\n');
    const policy = policyOf(`domain: d\ndescriptors:\n  - key: tenant\n    descriptors:\n${lines}\n`);
    const requests = Array.from({ length: VALUES }, (_, i) => entries('tenant=acme', `k=${textOf(i)}`));
    return (call) => policy.match(requests[call % VALUES] as (typeof requests)[number]);
  };
}

const address = (i: number): string => `10.${i >> 2}.${(i & 3) * 64}.7`;
const address6 = (i: number): string => `2001:db8:${i.toString(16)}::7`;
const blocks = Array.from({ length: VALUES }, (_, i) => `value_cidr: 10.${i >> 2}.${(i & 3) * 64}.0/24`);
const blocks6 = Array.from({ length: VALUES }, (_, i) => `value_cidr: "2001:db8:${i.toString(16)}::/48"`);
const exact = Array.from({ length: VALUES }, (_, i) => `value: ${address(i)}`);

/** Kinds of 1,000 regular expressions. */
const PATTERNS: Readonly<Record<string, (i: number) => string>> = {
  'from the beginning': (i) => `/api/v[0-9]+/res${i}/[^/]+`,
  anywhere: (i) => `.*/res${i}/.*`,
  'nested repetitions': (i) => `(a|aa)+b${i}`,
};
const regexes = (kind: string): string[] =>
  Array.from({ length: VALUES }, (_, i) => `value_regex: '${PATTERNS[kind]?.(i)}'`);

let state = 1;
function random(below: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
  return (state >> 8) % below;
}

/** Functions that return a new value, so that no cache contains the result, by kind. */
const NEW_VALUES: Readonly<Record<string, (length: number) => string>> = {
  usual: () => `/api/v1/res${random(VALUES)}/item${random(1e6)}`,
  'long, of one letter': (length) => 'a'.repeat(length - 7) + String(random(1e6)).padStart(7, '!'),
  'every way at once': (length) => {
    let text = '';
    while (text.length < length) text += `/res${random(VALUES)}/`;
    return `${text.slice(0, length - 1)}!`;
  },
};

/**
 * Returns the time in which a list of 1,000 expressions matches a new value: the mean and the maximum, which includes
 * building states of the automaton.
 */
function measureNewValues(kind: string): readonly Measurement[] {
  const list = new RegexList<number>();
  for (let i = 0; i < VALUES; i++) {
    const pattern = PATTERNS[kind]?.(i) as string;
    list.add([pattern], [patternCost(pattern) as number], i);
  }
  return Object.entries(NEW_VALUES).flatMap(([name, textOf]) =>
    (name === 'usual' ? [0] : [64, 512, 2048, 4096]).flatMap((length) => {
      for (let i = 0; i < 20; i++) find(list, textOf(length));
      let calls = 0;
      let slowest = 0;
      const started = performance.now();
      while (performance.now() - started < 500) {
        const value = textOf(length);
        const before = performance.now();
        find(list, value);
        slowest = Math.max(slowest, performance.now() - before);
        calls++;
      }
      const mean = (performance.now() - started) / calls;
      const what = `1,000 ${kind}, fresh, ${name}${length === 0 ? '' : `, ${length}`}`;
      return [
        { name: what, value: mean * 1000, unit: 'us' },
        { name: '  maximum', value: slowest * 1000, unit: 'us' },
      ];
    }),
  );
}

/** Matches a value like the only value of a request, which may exceed the bound of work. */
function find(list: RegexList<number>, value: string): void {
  list.find(value, Buffer.byteLength(value), new MatchWork(DEFAULT_MAX_MATCH_WORK));
}

/** A node that matches every value. */
const KEY_ALONE = 'share_threshold: false';

runCases(__filename, {
  'plain: key alone': matching([KEY_ALONE], address),
  'plain: 1,000 exact values': matching(exact, address),
  '1,000 blocks of IPv4': matching(blocks, address),
  '1,000 blocks of IPv6': matching(blocks6, address6),
  '1,000 blocks, no address': matching([...blocks, KEY_ALONE], (i) => `/api/v1/res${i}/item`),
  ...Object.fromEntries(
    Object.keys(PATTERNS).flatMap((kind) => [
      [
        `1,000 regular expressions ${kind}, seen before`,
        matching([...regexes(kind), KEY_ALONE], (i) => `/api/v1/res${i}/item`),
      ],
      [`1,000 regular expressions ${kind}, fresh`, { measure: () => measureNewValues(kind) }],
    ]),
  ),
});
