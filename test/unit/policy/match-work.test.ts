import { describe, expect, test } from '@jest/globals';
import { RuleStep } from '../../../src/policy/derive/derive.js';
import { DEFAULT_MAX_MATCH_WORK, MatchWork } from '../../../src/policy/match-work.js';
import { PathPattern } from '../../../src/policy/paths/path-pattern.js';
import { CidrTable } from '../../../src/policy/values/cidr-table.js';
import { entries, policyOf } from '../../support/policy/policies.js';

/** The maximum size of a request. */
const LONG = 64 * 1024;

function stepOf(...patterns: string[]): RuleStep {
  const step = new RuleStep('e', ['k']);
  patterns.forEach((source, i) => {
    step.add({ conditions: [PathPattern.parse(source) as PathPattern], value: String(i) });
  });
  return step;
}

/** Returns the least number of units with which a search does not exceed the bound. */
function unitsOf(find: (work: MatchWork) => unknown): number {
  let low = 0;
  let high = 2 ** 30;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const work = new MatchWork(middle);
    find(work);
    if (work.exceeded === undefined) high = middle;
    else low = middle + 1;
  }
  return low;
}

const times = (count: number, one: (i: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => one(i));

test('a bound that is exceeded stays exceeded until the next request', () => {
  const work = new MatchWork(100, 10);
  expect([work.chargePattern(36), work.charge(0), work.exceeded]).toEqual([true, true, undefined]);
  expect([work.charge(1), work.exceeded]).toEqual([false, 'match_work']);
  expect([work.admitsRegexValue(11), work.exceeded]).toEqual([false, 'match_work']);
  work.reset();
  expect([work.admitsRegexValue(10), work.exceeded]).toEqual([true, undefined]);
  expect([work.admitsRegexValue(11), work.exceeded]).toEqual([false, 'regex_value']);
  const unbounded = new MatchWork();
  expect([unbounded.charge(1e15), unbounded.admitsRegexValue(1e9)]).toEqual([true, true]);
});

describe('paths cost units for their bytes, not for the number of rules', () => {
  const shapes: Readonly<Record<string, (i: number) => string>> = {
    literals: (i) => `/api/v1/things${i}/items`,
    '*': (i) => `/api/v1/*/things${i}`,
    '** at the end': (i) => `/api/*/things${i}/**`,
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
      const units = (count: number): number => {
        const step = stepOf(...times(count, shapes[shape] as (i: number) => string));
        return unitsOf((work) => step.firstRule([paths[path] as string], work));
      };
      const one = units(1);
      expect(units(1000)).toBeLessThanOrEqual(one + 40);
      expect(one).toBeLessThanOrEqual(300 + (paths[path] as string).length);
    },
  );
});

describe('path patterns that are tried one by one cost units', () => {
  test.each([
    ['one star in a segment', (i: number) => `/api/v1/a*-${i}/x`],
    ['** in the middle', (i: number) => `/api/**/things${i}`],
  ])('%s, a few for each', (_, shape) => {
    const units = (count: number): number =>
      unitsOf((work) => stepOf(...times(count, shape)).firstRule(['/api/v1/acme/more'], work));
    expect(units(1000) - units(500)).toBe(500 * 8);
  });

  test('several stars and **, for each comparison', () => {
    const path = `/${'ac'.repeat(LONG / 2)}b`;
    const step = stepOf(...times(1000, (i) => `/*a*${'a'.repeat((i % 30) + 1)}?*b`));
    const exceeds = (one: RuleStep, value: string): boolean => {
      const work = new MatchWork(DEFAULT_MAX_MATCH_WORK);
      one.firstRule([value], work);
      return work.exceeded === 'match_work';
    };
    expect([exceeds(step, '/aacaXb'), exceeds(step, path)]).toEqual([false, true]);
    expect(exceeds(stepOf('/**/b/**/c'), `/${'a/'.repeat(LONG / 2)}c`)).toBe(true);
    expect(exceeds(stepOf(`/*[${'acegikmoq'.repeat(20)}]b`), `/${'b'.repeat(4000)}`)).toBe(true);
  });
});

describe('values cost units for each pattern that is tried', () => {
  const limit = 'rate_limit: { unit: hour, requests_per_unit: 1 }';
  const policy = (...nodes: readonly string[]) =>
    policyOf(
      `domain: d\ndescriptors:\n${nodes.map((node) => `  - { key: k, ${node}, ${limit} }\n`).join('')}`,
    );
  const unitsFor = (nodes: readonly string[], value: string): number =>
    unitsOf((work) => policy(...nodes).match(entries(`k=${value}`), work));
  const wildcards = ["value: 'a*'", "value: '*b'", "value: '*c*'"];

  test('until one matches, in file order', () => {
    expect(unitsFor(wildcards, 'axx')).toBe(64 + 3);
    expect(unitsFor(wildcards, 'xxb')).toBe(2 * (64 + 3));
    // Text between two stars is searched.
    expect(unitsFor(wildcards, 'xxx')).toBe(2 * (64 + 3) + 64 + 2 * 3);
    expect(unitsFor([...wildcards, 'value: xxx'], 'xxx')).toBe(0);
    // Bytes of UTF-8 count.
    expect(unitsFor(wildcards, 'é€😀')).toBe(2 * (64 + 9) + 64 + 2 * 9);
    expect(unitsFor([], 'xxx')).toBe(0);
  });

  test('and more for regular expressions, which come last', () => {
    const regexes = ["value_regex: 'x+'", "value_regex: 'y+'"];
    const one = unitsFor(regexes, 'xxx');
    expect(one).toBeGreaterThan(64 + 3);
    expect(unitsFor(regexes, 'yyy')).toBe(2 * one);
    expect(unitsFor([...regexes, "value: 'y*'"], 'yyy')).toBe(64 + 3);
  });

  test('and for each instruction of an expression with too many states', () => {
    const unitsOfOne = (regex: string, value: string): number => unitsFor([`value_regex: '${regex}'`], value);
    expect(unitsOfOne('.*(one|two)/[0-9]+', 'x'.repeat(100))).toBe(64 + 3 * 100);
    expect(unitsOfOne('(a|aa)*b', 'x'.repeat(100))).toBe(64 + 3 * 100);
    expect(unitsOfOne('.*a.{30}', 'x'.repeat(100))).toBe(64 + 3 * 35 * 100);
  });

  test('but none for a cached result', () => {
    const compiled = policy("value_regex: 'x+'", ...times(20, (i) => `value: '*-${i}'`));
    const request = entries('k=xxx');
    const first = compiled.match(request, new MatchWork());
    const work = new MatchWork(0);
    expect(compiled.match(request, work)).toEqual(first);
    expect([first.rules.length, work.exceeded]).toEqual([1, undefined]);
    // A request that exceeds the bound caches nothing.
    const other = entries('k=zzz');
    compiled.match(other, work);
    expect(work.exceeded).toBe('match_work');
    work.reset();
    compiled.match(other, work);
    expect(work.exceeded).toBe('match_work');
  });

  test('and a value that is too long for regular expressions is not tried on them', () => {
    const compiled = policy("value_regex: 'x.*'", "value: 'y*'", 'value: exact-€', 'value_cidr: 10.0.0.0/8');
    const exceededBy = (value: string): string | undefined => {
      const work = new MatchWork(DEFAULT_MAX_MATCH_WORK, 8);
      compiled.match(entries(`k=${value}`), work);
      return work.exceeded;
    };
    expect(['x2345678', 'x23456789', '€€€'].map(exceededBy)).toEqual([
      undefined,
      'regex_value',
      'regex_value',
    ]);
    // Values that match before.
    expect(['y23456789', 'exact-€', '10.99.99.99'].map(exceededBy)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('and more for a long text between stars, which may be compared at each position', () => {
    const text = `${'a'.repeat(400)}b${'a'.repeat(400)}`;
    expect(unitsFor([`value: '*${text}*'`], 'a'.repeat(1000))).toBe(64 + 1000 * (2 + 51));
    expect(unitsFor([`value: '*${text.slice(300, 550)}*'`], 'a'.repeat(1000))).toBe(64 + 1000 * 2);
  });

  test('of 64 KiB, with as many stars as there can be', () => {
    const compiled = policy(`value: '${'a*'.repeat(2000)}b'`);
    expect(compiled.match(entries(`k=${'a'.repeat(LONG)}`)).rules).toHaveLength(0);
    expect(compiled.match(entries(`k=${'a'.repeat(LONG)}b`)).rules).toHaveLength(1);
  });
});

test('a string longer than any address is not an address, and costs nothing', () => {
  const table = new CidrTable<string>();
  table.add(['::/0', '0.0.0.0/0'], 'all');
  expect(table.find(`${'0'.repeat(60)}::1`, new MatchWork(0))).toBeUndefined();
  expect(table.find(`${'0'.repeat(LONG)}/1`, new MatchWork(0))).toBeUndefined();
  expect(table.find('1.2.3.4/32', new MatchWork())).toBe('all');
});

test('a network costs a lookup for each prefix length, and an address nothing', () => {
  const table = new CidrTable<string>();
  const prefixes = Array.from({ length: 128 }, (_, i) => i + 1);
  table.add(
    prefixes.map((prefix) => `8000::/${prefix}`),
    'all',
  );
  expect(unitsOf((work) => table.find('4000::1', work))).toBe(0);
  // A network takes 60 µs, and a request may contain a thousand networks.
  const ofNetwork = unitsOf((work) => table.find('4000::1/128', work));
  expect(ofNetwork).toBeGreaterThan(128 * 100);
  expect(table.find('8000::/127', new MatchWork(ofNetwork))).toBe('all');
});
