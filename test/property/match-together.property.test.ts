import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { RuleIndex } from '../../src/policy/derive/rule-index.js';
import { MatchMemo, MatchWork } from '../../src/policy/match-work.js';
import { normalisePath } from '../../src/policy/paths/normalise-path.js';
import { PathPattern } from '../../src/policy/paths/path-pattern.js';
import { Level, type LevelNode } from '../../src/policy/policy-node.js';
import { patternCost } from '../../src/policy/values/regex-list.js';
import { Wildcard } from '../../src/policy/values/value-matcher.js';
import { expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { definedPath } from '../support/policy/defined-path.js';

/** Texts of a few pieces, so that they often match each other. */
const text = (pieces: readonly string[], maxLength = 8): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...pieces), { maxLength }).map((parts) => parts.join(''));

describe('the normal form of a path', () => {
  const pieces = [
    '/',
    '/',
    '.',
    '..',
    'a',
    'f',
    '2',
    '%',
    '%2F',
    '%2f',
    '%25',
    '%32',
    '%66',
    '%2e',
    '%41',
    '?',
    '#',
    ':',
    'http://',
    'x+1.-:',
    'é',
    '\ud800',
    '\ufeff',
    '😀',
  ];
  const byte = fc
    .oneof(
      fc.constantFrom(
        0x80,
        0xbf,
        0xc1,
        0xc2,
        0xe0,
        0x9f,
        0xa0,
        0xed,
        0xf0,
        0x8f,
        0x90,
        0xf4,
        0xf5,
        0xff,
        0xef,
        0xbb,
      ),
      fc.nat(255),
    )
    .map((one) => `%${one.toString(16).padStart(2, '0')}`);
  const target = fc
    .array(fc.oneof(fc.constantFrom(...pieces), byte, byte), { maxLength: 24 })
    .map((parts) => parts.join(''));

  test('matches its definition for any target', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          target,
          target.map((one) => `/${one}`),
        ),
        (given) => {
          expectSame(normalisePath(given), definedPath(given));
        },
      ),
      runs(20_000),
    );
  });

  test('does not depend on the previous path, long or short', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(target, fc.constantFrom(0, 1, 70_000)), { maxLength: 6 }), (given) => {
        for (const [one, more] of given) {
          const path = `${'/a%41'.repeat(more / 5)}${one}`;
          expectSame(normalisePath(path), definedPath(path));
        }
      }),
      { numRuns: 30 },
    );
  });
});

describe('the rules of a step', () => {
  /** Regular expressions for the segments of a pattern; each matches one segment of a path. */
  const SEGMENTS: Readonly<Record<string, string>> = {
    a: 'a',
    b: 'b',
    ab: 'ab',
    '*': '.*',
    'a*': 'a.*',
    '*b': '.*b',
    'a*b': 'a.*b',
    'aa*': 'aa.*',
    '*bb': '.*bb',
    '?': '.',
    'a?': 'a.',
    '*a*': '.*a.*',
    '[ab]b': '[ab]b',
    '[!a]*': '[^a].*',
    '{a,b}': 'a|b',
    '{a,b*,aa}b': '(?:a|b.*|aa)b',
    '\\*': '\\*',
    '.a': '\\.a',
    '😀': '😀',
    '?b': '.b',
    '[\\-c]': '[-c]',
  };
  const MATCHERS = new Map(
    Object.entries(SEGMENTS).map(([one, inside]) => [one, new RegExp(`^(?:${inside})$`, 'su')]),
  );
  const segment = fc.constantFrom(...MATCHERS.keys(), '*', '**', '**', '{a/b,**}');
  const pattern = fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`);

  /** Returns whether the segments of a pattern match the segments of a path. Tries all assignments. */
  function fits([first, ...rest]: readonly string[], path: readonly string[]): boolean {
    if (first === undefined) return path.length === 0;
    if (first === '{a/b,**}') return fits(['a', 'b', ...rest], path) || fits(['**', ...rest], path);
    const [next, ...after] = path;
    if (first === '**') return fits(rest, path) || (next !== undefined && fits([first, ...rest], after));
    return next !== undefined && MATCHERS.get(first)?.test(next) === true && fits(rest, after);
  }

  function matchesByDefinition(source: string, path: string): boolean {
    return fits(source.match(/\{.*?\}[^/]*|[^/]+/g) ?? [], path === '/' ? [] : path.slice(1).split('/'));
  }

  const exact = fc.constantFrom('GET', 'POST', '');
  const condition = fc.oneof(
    { weight: 4, arbitrary: pattern },
    { weight: 2, arbitrary: exact },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
  const path = fc
    .array(
      fc.constantFrom(
        ...['a', 'b', 'ab', 'aab', 'abb', 'c', '*', '.', '.a', 'a\nb', '😀', '-', 'aXb', '\ud83d'],
      ),
      {
        maxLength: 6,
      },
    )
    .map((segments) => `/${segments.join('/')}`);
  const value = fc.oneof({ weight: 4, arbitrary: path }, { weight: 1, arbitrary: exact });
  const case_ = fc.integer({ min: 1, max: 3 }).chain((sources) =>
    fc.record({
      rules: fc.array(fc.array(condition, { minLength: sources, maxLength: sources }), { maxLength: 25 }),
      asked: fc.array(fc.array(value, { minLength: sources, maxLength: sources }), { maxLength: 12 }),
      sources: fc.constant(sources),
    }),
  );

  /** Evaluates rule by rule and condition by condition. */
  function firstFit(rules: readonly (readonly (string | undefined)[])[], values: readonly string[]): number {
    return rules.findIndex((conditions) =>
      conditions.every((source, i) => {
        const given = values[i] as string;
        if (source === undefined) return true;
        if (!source.startsWith('/')) return source === given;
        return matchesByDefinition(source, definedPath(given));
      }),
    );
  }

  function indexOf(rules: readonly (readonly (string | undefined)[])[], sources: number): RuleIndex {
    const index = new RuleIndex(sources);
    rules.forEach((conditions, i) => {
      const compiled = conditions.map((source) =>
        source?.startsWith('/') ? (PathPattern.parse(source) as PathPattern) : source,
      );
      index.add({ conditions: compiled, value: String(i) });
    });
    return index;
  }

  test('together return the first rule that matches separately', () => {
    fc.assert(
      fc.property(case_, ({ rules, asked, sources }) => {
        const index = indexOf(rules, sources);
        for (const values of asked) {
          const expected = firstFit(rules, values);
          expectSame(index.find(values, new MatchWork())?.value, expected < 0 ? undefined : String(expected));
        }
      }),
      runs(5000),
    );
  });

  test('return that rule, or exceed the bound of work', () => {
    fc.assert(
      fc.property(case_, fc.nat(600), ({ rules, asked, sources }, units) => {
        const index = indexOf(rules, sources);
        const work = new MatchWork(units);
        for (const values of asked) {
          work.reset();
          const found = index.find(values, work);
          if (work.exceeded !== undefined) continue;
          const expected = firstFit(rules, values);
          expectSame(found?.value, expected < 0 ? undefined : String(expected));
        }
      }),
      runs(1000),
    );
  });

  test('a single pattern matches as defined', () => {
    fc.assert(
      fc.property(pattern, path, (source, given) => {
        const compiled = PathPattern.parse(source) as PathPattern;
        expectSame(compiled.matches(given), matchesByDefinition(source, given));
      }),
      runs(10_000),
    );
  });
});

describe('the nodes of a level', () => {
  const wildcard = fc
    .tuple(text(['a', 'b', 'ab', '*', '😀'], 5), text(['a', 'b', '*'], 3), text(['a', 'bb', '*'], 3))
    .map(([first, second, third]) => `${first}*${second}${third}`);
  const regex = text(['a', '.', 'b?', '(a|bb)*', '[ab]'], 4);
  const value = fc.oneof(text(['a', 'b', 'ab', '😀', '*'], 12), text(['a', 'b'], 60));

  /** A node that is tried for a value, and its definition as an expression of JavaScript. */
  interface TriedNode extends LevelNode {
    readonly model: RegExp;
  }

  const escaped = (part: string): string => part.replaceAll('*', '\\*');
  const exactNode = (one: string): TriedNode => ({
    value: one,
    matcher: undefined,
    wildcard: undefined,
    model: new RegExp(`^${escaped(one)}$`, 'su'),
  });
  const wildcardNode = (one: string): TriedNode => ({
    value: one,
    matcher: undefined,
    wildcard: new Wildcard(one),
    model: new RegExp(`^${one.split('*').map(escaped).join('.*')}$`, 's'),
  });
  const regexNode = (one: string): TriedNode => ({
    value: '',
    matcher: { kind: 'regex', items: [one], costs: [patternCost(one) as number] },
    wildcard: undefined,
    model: new RegExp(`^(?:${one})$`, 'u'),
  });

  const case_ = fc.record({
    exact: fc.uniqueArray(
      text(['a', 'b', '😀'])
        .filter((one) => one !== '')
        .map(exactNode),
      {
        selector: (node) => node.value,
        maxLength: 3,
      },
    ),
    wildcards: fc.uniqueArray(wildcard, { maxLength: 40 }),
    regexes: fc.uniqueArray(regex, { maxLength: 10 }),
    hasAny: fc.boolean(),
    values: fc.array(value, { maxLength: 12 }),
  });
  const ANY: TriedNode = { value: '', matcher: undefined, wildcard: undefined, model: /^/ };

  test('are tried as exact values, patterns and expressions in file order, then the node for any value', () => {
    fc.assert(
      fc.property(case_, fc.nat(2000), ({ exact, wildcards, regexes, hasAny, values }, units) => {
        const order = [...exact, ...wildcards.map(wildcardNode), ...regexes.map(regexNode)];
        if (hasAny) order.push(ANY);
        const level = new Level<TriedNode>(new MatchMemo());
        // The order of kinds in the file does not matter.
        for (const node of [...order].sort((one, other) => Number(!one.matcher) - Number(!other.matcher))) {
          level.add(node);
        }
        const work = new MatchWork(units);
        // The second time, results may be cached.
        for (const one of [...values, ...values]) {
          const expected = order.find(({ model }) => model.test(one));
          expectSame(level.find(one, new MatchWork()), expected);
          work.reset();
          const found = level.find(one, work);
          if (work.exceeded === undefined) expectSame(found, expected);
        }
      }),
      runs(3000),
    );
  });
});
