/*
 * Cost per decision against bytes of the request and against the number of rules, for each matcher: the lines must be
 * straight in the one, and flat in the other. `node build/test/bench/micro/match-growth.bench.js [part of a name …]`;
 * `npm run bench -- micro match-growth --write` draws them.
 */
import type { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { unboundedWork } from '../../../src/policy/match-work.js';
import { policyOf } from '../../support/policy/policies.js';
import { type Figure, type FiguresCase, QUICK, runCases } from './measure.js';

const BYTES = [64, 256, 1024, 4096, 16_384, 61_440];
const RULES = [1, 10, 100, 1000, 10_000];
/** What is held fixed while the other grows. */
const USUAL_BYTES = 64;
const USUAL_RULES = 1000;
const ROUNDS = QUICK ? 1 : 7;
const ROUND_MS = QUICK ? 2 : 30;

const RATE = 'rate_limit: { unit: second, requests_per_unit: 10 }';

/** One way to match: a policy with so many rules, and values that are held against it. */
interface Matcher {
  readonly rules: (count: number) => string;
  /** A value of about so many bytes for the rule with this number; digits in place of `#` make each call's another. */
  readonly value: (bytes: number, rule: number) => string;
  /** Fewer than 10,000 rules, for those that take them one by one. */
  readonly most?: number;
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
const nasty =
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
      bytes <= USUAL_BYTES ? `10.${rule >> 8}.${rule & 255}.7` : padded('10.1.2.', '#1', bytes, ''),
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
      bytes <= USUAL_BYTES
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
    most: 1000,
  },
  'path, a/../ a/../': { rules: pathRules, value: nasty('a/../') },
  'path, //////': { rules: pathRules, value: nasty('/') },
  'path, %41%41': { rules: pathRules, value: nasty('%41') },
  'path, %ff%ff': { rules: pathRules, value: nasty('%ff') },
  'path, a/a/a/': {
    rules: pathRules,
    value: (bytes, rule) => padded(`/api/v1/acme/things${rule}/########/`, 'a/', bytes, ''),
  },
  'regular expression': {
    rules: descriptors((i) => `value_regex: '/api/v[0-9]+/res${i}/[^/]+'`),
    value: (bytes, rule) => padded(`/api/v1/res${rule}/########`, 'abc', bytes, ''),
    most: 1000,
  },
  'API key, sha256': {
    rules: (count) =>
      'domain: d\nderive:\n  - entry: e\n    from: [k]\n    ' +
      `sha256:\n${list(count, (i) => `      ${i.toString(16).padStart(64, '0')}: tenant-${i}`)}\n`,
    value: (bytes) => padded('########', 'abc', bytes, ''),
  },
};

/** What one decision does with the value. */
function matching(policy: CompiledPolicy): (value: string) => void {
  const level = policy.root.levels.get('k');
  if (level !== undefined) return (value) => level.find(value, unboundedWork());
  const method = { key: 'method', value: 'GET' };
  const [step] = policy.steps;
  return (value) => step?.apply([method, { key: 'k', value }], unboundedWork());
}

/** Least CPU time of a call, in microseconds. Each value is a fresh string, as from a request, and another one. */
function microsOf(find: (value: string) => void, value: string): number {
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
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    let count = 0;
    for (const until = performance.now() + ROUND_MS; performance.now() < until; count += batch) calls(batch);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / count);
  }
  return least;
}

function growthOf(name: string, { rules, value, most = Number.POSITIVE_INFINITY }: Matcher): FiguresCase {
  const usual = Math.min(USUAL_RULES, most);
  return {
    figures: () => {
      const figures: Figure[] = [];
      const add = (find: (value: string) => void, bytes: number, count: number): number => {
        const micros = microsOf(find, value(bytes, count - 1));
        const what = `${name}: ${count.toLocaleString('en')} rules, ${bytes.toLocaleString('en')} bytes`;
        figures.push({
          name: what,
          value: micros,
          unit: 'us',
          point: { matcher: name, rules: count, bytes },
        });
        return micros;
      };
      const byRules = new Map<number, number>();
      for (const count of RULES.filter((one) => one <= most)) {
        const find = matching(policyOf(rules(count)));
        byRules.set(count, add(find, USUAL_BYTES, count));
        if (count !== usual) continue;
        const [first, ...others] = BYTES.map((bytes) => add(find, bytes, count));
        const growth = ((others.at(-1) ?? 0) - (first ?? 0)) / (((BYTES.at(-1) ?? 0) - USUAL_BYTES) / 1024);
        figures.push({ name: `${name}: each KB more`, value: growth, unit: 'us' });
      }
      const ratio = (byRules.get(usual) ?? 0) / (byRules.get(1) ?? 1);
      figures.push({
        name: `${name}: ${usual.toLocaleString('en')} rules / one`,
        value: ratio,
        unit: 'times',
      });
      return figures;
    },
  };
}

runCases(
  __filename,
  Object.fromEntries(Object.entries(MATCHERS).map(([name, matcher]) => [name, growthOf(name, matcher)])),
);
