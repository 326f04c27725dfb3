/*
 * The cost of each matcher for values of different lengths and for different numbers of rules. The cost should be
 * proportional to the length, and should not depend on the number of rules. To run it: `node
 * build/test/bench/micro/match-growth.bench.js [part of a name …]`. To create the chart: `npm run bench -- micro
 * match-growth --write`.
 */
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { MatchWork } from '../../../src/policy/match-work.js';
import { policyOf } from '../../support/policy/policies.js';
import { type CustomCase, type Measurement, QUICK, runCases } from './measure.js';

const BYTES = [64, 256, 1024, 4096, 16_384, 61_440];
const RULES = [1, 10, 100, 1000, 10_000];
/** Length of the value while the number of rules varies, and number of rules while the length varies. */
const FIXED_BYTES = 64;
const FIXED_RULES = 1000;
const ROUNDS = QUICK ? 1 : 7;
const ROUND_MS = QUICK ? 2 : 30;

const RATE = 'rate_limit: { unit: second, requests_per_unit: 10 }';

/** A kind of matcher, with policies and values. */
interface Matcher {
  /** Returns a policy with `count` rules. */
  readonly rules: (count: number) => string;
  /** Returns a value of about `bytes` bytes for a rule. Each call replaces `########` with other digits. */
  readonly value: (bytes: number, rule: number) => string;
  /** Maximum number of rules, for matchers that check rules one at a time. */
  readonly maxRules?: number;
}

const list = (count: number, line: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join('\n');
const descriptors =
  (field: (i: number) => string) =>
  (count: number): string =>
    `domain: d\ndescriptors:\n${list(count, (i) => `  - { key: k, ${field(i)}, ${RATE} }`)}\n`;
const derived =
  (rule: (i: number) => string) =>
  (count: number): string =>
    'domain: d\nderive:\n  - entry: e\n    from: [method, k]\n    ' +
    `rules:\n${list(count, (i) => `      - { ${rule(i)}, value: v${i} }`)}\n`;
const padded = (before: string, filler: string, bytes: number, after: string): string => {
  const room = Math.max(0, bytes - before.length - after.length);
  return before + filler.repeat(Math.ceil(room / filler.length)).slice(0, room) + after;
};
const hostilePath =
  (filler: string): Matcher['value'] =>
  (bytes, rule) =>
    `${padded('/', filler, bytes - 40, '')}/../../api/v1/acme/things${rule}/########`;
const pathRules = derived((i) => `method: GET, k: "/api/v1/*/things${i}/**"`);

const MATCHERS: Readonly<Record<string, Matcher>> = {
  'exact value': {
    rules: descriptors((i) => `value: ${padded(`v${i}-`, 'abc', 24, '')}`),
    value: (bytes, rule) => padded(`v${rule}-########`, 'abc', bytes, ''),
  },
  'address in blocks': {
    rules: descriptors((i) => `value_cidr: 10.${i >> 8}.${i & 255}.0/24`),
    value: (bytes, rule) =>
      bytes <= FIXED_BYTES ? `10.${rule >> 8}.${rule & 255}.7` : padded('10.1.2.', '#1', bytes, ''),
  },
  'wildcard abc*': {
    rules: descriptors((i) => `value: "tenant-${i}-*"`),
    value: (bytes, rule) => padded(`tenant-${rule}-########`, 'abc', bytes, ''),
  },
  'wildcard *abc': {
    rules: descriptors((i) => `value: "*-tenant-${i}"`),
    value: (bytes, rule) => padded('########', 'abc', bytes, `-tenant-${rule}`),
  },
  'wildcard *abc*': {
    rules: descriptors((i) => `value: "*-tenant-${i}-*"`),
    value: (bytes, rule) => padded('########', 'ten-', bytes, `-tenant-${rule}-`),
  },
  'wildcard *a*b*': {
    rules: descriptors((i) => `value: "*/res${i}/*/items/*"`),
    value: (bytes, rule) => padded('########', 'res/', bytes - 24, `/res${rule}/a/items/b`),
  },
  'path, literal': {
    rules: derived((i) => `method: GET, k: /api/v1/things${i}/items`),
    value: (bytes, rule) =>
      bytes <= FIXED_BYTES
        ? `/api/v1/things${rule}/items?q=########`
        : padded(`/api/v1/things${rule}/items/########`, 'abcdefg/', bytes, 'x'),
  },
  'path, *': {
    rules: derived((i) => `method: GET, k: "/api/v1/*/things${i}"`),
    value: (bytes, rule) => `${padded('/api/v1/########', 'abc', bytes - 14, '')}/things${rule}`,
  },
  'path, a*b/**': {
    rules: derived((i) => `method: GET, k: "/api/v1/t*-${i}/**"`),
    value: (bytes, rule) => padded(`/api/v1/t-########-${rule}/`, 'abcdefg/', bytes, 'x'),
  },
  'path, ** in the middle': {
    rules: derived((i) => `k: "/api/**/things${i}"`),
    value: (bytes, rule) => `${padded('/api/########/', 'abcdefg/', bytes - 14, 'x')}/things${rule}`,
    maxRules: 1000,
  },
  'path, a/../ a/../': { rules: pathRules, value: hostilePath('a/../') },
  'path, //////': { rules: pathRules, value: hostilePath('/') },
  'path, %41%41': { rules: pathRules, value: hostilePath('%41') },
  'path, %ff%ff': { rules: pathRules, value: hostilePath('%ff') },
  'path, a/a/a/': {
    rules: pathRules,
    value: (bytes, rule) => padded(`/api/v1/acme/things${rule}/########/`, 'a/', bytes, ''),
  },
  'regular expression': {
    rules: descriptors((i) => `value_regex: '/api/v[0-9]+/res${i}/[^/]+'`),
    value: (bytes, rule) => padded(`/api/v1/res${rule}/########`, 'abc', bytes, ''),
    maxRules: 1000,
  },
  'API key, sha256': {
    rules: (count) =>
      'domain: d\nderive:\n  - entry: e\n    from: [k]\n    ' +
      `sha256:\n${list(count, (i) => `      ${i.toString(16).padStart(64, '0')}: tenant-${i}`)}\n`,
    value: (bytes) => padded('########', 'abc', bytes, ''),
  },
};

/** Returns the function that a decision calls to match a value. */
function matching(policy: CompiledPolicy): (value: string) => void {
  const level = policy.root.levels.get('k');
  if (level !== undefined) return (value) => level.find(value, new MatchWork());
  const method = { key: 'method', value: 'GET' };
  const [step] = policy.steps;
  return (value) => step?.apply([method, { key: 'k', value }], new MatchWork());
}

/** Returns the minimum CPU time of a call in microseconds. Each call matches a new string, as in requests. */
function minMicrosOf(find: (value: string) => void, value: string): number {
  const bytes = Buffer.from(value, 'latin1');
  const digits = bytes.indexOf('#');
  let call = 0;
  const calls = (count: number): void => {
    for (let i = 0; i < count; i++) {
      if (digits >= 0) bytes.write(String(10_000_000 + (call++ % 90_000_000)), digits, 'latin1');
      find(bytes.toString('latin1'));
    }
  };
  let batch = 1;
  for (const until = performance.now() + ROUND_MS; performance.now() < until; ) {
    calls(batch);
    batch = Math.min(batch * 2, Math.max(1, Math.ceil(200_000 / bytes.length)));
  }
  let min = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    let count = 0;
    for (const until = performance.now() + ROUND_MS; performance.now() < until; count += batch) calls(batch);
    const { user, system } = process.cpuUsage(before);
    min = Math.min(min, (user + system) / count);
  }
  return min;
}

function growthOf(name: string, { rules, value, maxRules = Number.POSITIVE_INFINITY }: Matcher): CustomCase {
  const fixedRules = Math.min(FIXED_RULES, maxRules);
  return {
    measure: () => {
      const measurements: Measurement[] = [];
      const add = (find: (value: string) => void, bytes: number, count: number): number => {
        const micros = minMicrosOf(find, value(bytes, count - 1));
        const what = `${name}: ${count.toLocaleString('en')} rules, ${bytes.toLocaleString('en')} bytes`;
        measurements.push({
          name: what,
          value: micros,
          unit: 'us',
          point: { matcher: name, rules: count, bytes },
        });
        return micros;
      };
      const byRules = new Map<number, number>();
      for (const count of RULES.filter((one) => one <= maxRules)) {
        const find = matching(policyOf(rules(count)));
        byRules.set(count, add(find, FIXED_BYTES, count));
        if (count !== fixedRules) continue;
        const [first, ...others] = BYTES.map((bytes) => add(find, bytes, count));
        const growth = ((others.at(-1) ?? 0) - (first ?? 0)) / (((BYTES.at(-1) ?? 0) - FIXED_BYTES) / 1024);
        measurements.push({ name: `${name}: each additional KB`, value: growth, unit: 'us' });
      }
      const ratio = (byRules.get(fixedRules) ?? 0) / (byRules.get(1) ?? 1);
      measurements.push({
        name: `${name}: ${fixedRules.toLocaleString('en')} rules / one`,
        value: ratio,
        unit: 'times',
      });
      return measurements;
    },
  };
}

runCases(
  __filename,
  Object.fromEntries(Object.entries(MATCHERS).map(([name, matcher]) => [name, growthOf(name, matcher)])),
);
