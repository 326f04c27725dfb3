import { describe, expect, test } from '@jest/globals';
import { policyItems } from '../../../src/config/threads/policy-transfer.js';
import { CompiledPolicy } from '../../../src/policy/compiled-policy.js';
import { RuleStep, TableStep } from '../../../src/policy/derive/derive.js';
import { EXCEEDED, MatchWork, unboundedWork } from '../../../src/policy/match-work.js';
import { PathPattern } from '../../../src/policy/paths/path-pattern.js';
import { CidrTable } from '../../../src/policy/values/cidr-table.js';
import { PatternList } from '../../../src/policy/values/pattern-list.js';
import { Wildcard } from '../../../src/policy/values/wildcard.js';
import { entries, policyOf, setOf } from '../../support/policy/policies.js';
import { transferredPolicies } from '../../support/policy/transferred-policies.js';

/** The size of Envoy's largest list of headers. */
const LONG = 60 * 1024;
/** Maximum work of a request, 5 ms, in steps. */
const BUDGET = 1_000_000;

function stepOf(...patterns: string[]): RuleStep {
  const step = new RuleStep('e', ['k']);
  patterns.forEach((source, i) => {
    step.add({ conditions: [PathPattern.parse(source) as PathPattern], value: String(i) });
  });
  return step;
}

/** Returns the number of steps for one value. */
function costOf(find: (work: MatchWork) => unknown): number {
  const work = new MatchWork(1e9);
  expect(find(work)).not.toBe(EXCEEDED);
  return 1e9 - work.remaining;
}

const times = (count: number, one: (i: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => one(i));

describe('paths cost steps for their bytes, not for the number of rules', () => {
  const shapes: Readonly<Record<string, (i: number) => string>> = {
    literals: (i) => `/api/v1/things${i}/items`,
    '*': (i) => `/api/v1/*/things${i}`,
    'one star in a segment': (i) => `/api/v1/a*-${i}/x`,
    '** at the end': (i) => `/api/*/things${i}/**`,
    '** in the middle': (i) => `/api/**/things${i}`,
  };
  const paths: Readonly<Record<string, string>> = {
    usual: '/api/v1/acme/things0',
    long: `/api/v1/${'a'.repeat(LONG)}/nothing`,
    'many segments': `/${'a/'.repeat(LONG / 2)}b`,
    'dot segments': `/api/v1/${'a/../'.repeat(LONG / 5)}x`,
    slashes: `/api/v1${'/'.repeat(LONG)}x`,
    escapes: `/api/v1/${'%41'.repeat(LONG / 3)}`,
    'invalid UTF-8': `/api/v1/${'%ff'.repeat(LONG / 3)}`,
  };
  test.each(Object.keys(shapes).flatMap((shape) => Object.keys(paths).map((path) => [shape, path] as const)))(
    '%s, path: %s',
    (shape, path) => {
      const cost = (count: number): number => {
        const step = stepOf(...times(count, shapes[shape] as (i: number) => string));
        return costOf((work) => step.firstRule([paths[path] as string], work));
      };
      const one = cost(1);
      expect(cost(1000)).toBeLessThanOrEqual(one * 1.3 + 40);
      // A step takes about 5 ns: at most 2 for each byte, and the cost of a short path.
      expect(one).toBeLessThanOrEqual(300 + 2 * (paths[path] as string).length);
    },
  );
});

describe('values cost steps for their characters, not for the number of patterns', () => {
  const shapes: Readonly<Record<string, (i: number) => string>> = {
    'abc*': (i) => `tenant-${i}-*`,
    '*abc': (i) => `*-tenant-${i}`,
    'a*b': (i) => `ten*-${i}`,
    '*x*': (i) => `*x${i}y*`,
    '*x*y*': (i) => `*x${i}y*z*`,
  };
  const values = ['tenant-5-a', 'x'.repeat(LONG), 'tenant-1'.repeat(LONG / 8), 'x1'.repeat(LONG / 2)];
  test.each(Object.keys(shapes))('%s', (shape) => {
    const listOf = (count: number): PatternList<string> => {
      const list = new PatternList<string>();
      for (const one of times(count, shapes[shape] as (i: number) => string))
        list.add(new Wildcard(one), one);
      return list;
    };
    const [some, many] = [listOf(20), listOf(2000)];
    for (const value of values) {
      const cost = costOf((work) => some.find(value, work));
      expect(cost).toBeLessThanOrEqual(200 + 3 * value.length);
      expect(costOf((work) => many.find(value, work))).toBeLessThanOrEqual(cost * 1.3 + 200);
    }
  });
});

describe('work without a bound ends when the budget is used up', () => {
  test('values of 4 MB in one call', () => {
    const list = new PatternList<string>();
    for (const one of times(200, (i) => `*x${i}*`)) list.add(new Wildcard(one), one);
    const work = new MatchWork(BUDGET);
    expect(list.find('x'.repeat(4 << 20), work)).toBe(EXCEEDED);
    expect(work.remaining).toBe(-1);
    expect(stepOf('/a/*').firstRule([`/${'%41'.repeat(1 << 20)}`], new MatchWork(BUDGET))).toBe(EXCEEDED);
  });

  test('several stars and ** in a path', () => {
    const path = `/${'a'.repeat(LONG)}b`;
    const step = stepOf(...times(1000, (i) => `/*a*${'a'.repeat((i % 30) + 1)}?*b`), '/**/b/**/c');
    expect(step.firstRule([`${path}/c`], new MatchWork(BUDGET))).toBeUndefined();
    expect(step.firstRule([`/${'ac'.repeat(LONG / 2)}b`], new MatchWork(10_000))).toBe(EXCEEDED);
    expect(stepOf('/**/b/**/c').firstRule([`/${'a/'.repeat(LONG)}c`], new MatchWork(10_000))).toBe(EXCEEDED);
  });

  test('API keys and requests with many entries', () => {
    const table = new TableStep('t', 'k', new Map());
    const long = [{ key: 'k', value: 'x'.repeat(2 << 20) }];
    expect(table.apply(long, new MatchWork(BUDGET))).toBe(EXCEEDED);
    expect(table.apply(long, unboundedWork())).toMatchObject([{ key: 't' }]);
    const many = Array.from({ length: 10_000 }, () => ({ key: 'other', value: '' }));
    const work = new MatchWork(BUDGET);
    expect(stepOf('/a').apply(many, work)).toBe(many);
    expect(work.remaining).toBeLessThan(BUDGET - 4000);
    expect(stepOf('/a').apply(many, new MatchWork(100))).toBe(EXCEEDED);
  });
});

test('a string longer than any address is not an address', () => {
  const table = new CidrTable<string>();
  table.add(['::/0', '0.0.0.0/0'], 'all');
  expect(table.find(`${'0'.repeat(60)}::1`)).toBeUndefined();
  expect(table.find('1.2.3.4/32')).toBe('all');
});

test('a long text between stars costs the steps of its search', () => {
  const list = new PatternList<string>();
  const text = `${'a'.repeat(400)}b${'a'.repeat(400)}`;
  list.add(new Wildcard(`*${text}*z*`), 'long');
  const value = `${'a'.repeat(LONG)}b${'a'.repeat(400)}z`;
  // About 25 ms, because the whole text is compared at nearly every position.
  expect(costOf((work) => list.find(value, work))).toBeGreaterThan(LONG * 50);
  expect(list.find(value, unboundedWork())).toBe('long');
  expect(list.find(value, new MatchWork(BUDGET))).toBe(EXCEEDED);
});

test('a network costs a lookup for each prefix length, and an address almost none', () => {
  const table = new CidrTable<string>();
  const prefixes = Array.from({ length: 128 }, (_, i) => i + 1);
  table.add(
    prefixes.map((prefix) => `8000::/${prefix}`),
    'all',
  );
  const ofAddress = costOf((work) => table.find('4000::1', work));
  const ofNetwork = costOf((work) => table.find('4000::1/128', work));
  expect(ofAddress).toBeLessThan(100);
  // A network takes 0.5 µs, and a thousand descriptors may contain a thousand networks.
  expect(ofNetwork).toBeGreaterThan(128 * 100);
  expect(table.find('4000::1/128', new MatchWork(10_000))).toBe(EXCEEDED);
  expect(table.find('8000::/127', new MatchWork(100_000))).toBe('all');
});

test('compiled patterns are transferred in parts, and find the same', () => {
  const lines = times(
    2000,
    (i) => `  - { key: k, value: "*-some-tenant-${i}-*", rate_limit: { unlimited: true } }`,
  );
  const policy = policyOf(`domain: d\ndescriptors:\n${lines.join('\n')}\n`);
  const items = [...policyItems(setOf(policy))];
  expect(items.filter(({ kind }) => kind === 'patterns').length).toBeGreaterThan(2);
  const other = transferredPolicies(items).domains.get('d');
  expect(other).toBeInstanceOf(CompiledPolicy);
  for (const value of ['a-some-tenant-77-b', 'a-some-tenant-1999-', '-some-tenant-2000-', 'x'.repeat(1000)]) {
    expect(other?.match(entries(`k=${value}`))).toEqual(policy.match(entries(`k=${value}`)));
  }
  expect(other?.match(entries('k=a-some-tenant-77-b')).rules).toHaveLength(1);
});
