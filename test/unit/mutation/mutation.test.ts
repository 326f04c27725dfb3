import { describe, expect, test } from '@jest/globals';
import { identityOf, mutate, mutationsOf } from '../../mutation/mutations.js';
import { readMutationOptions } from '../../mutation/options.js';
import { type MutationResult, newSurvivors, tableOf } from '../../mutation/results.js';
import { draw, sharesOf } from '../../mutation/sample.js';
import { TestsOfRooms } from '../../mutation/tests-of-rooms.js';

const PATH = 'src/limiter/a.ts';

/** The source after each of its mutations. */
function mutants(source: string): string[] {
  return mutationsOf(new Map([[PATH, source]])).map((one) => mutate(source, one));
}

describe('mutations of a source file', () => {
  test.each<[source: string, mutants: string[]]>([
    ['x = a < b;', ['x = a <= b;']],
    ['x = a >= b;', ['x = a > b;']],
    ['x = a + (b - c);', ['x = a - (b - c);', 'x = a + (b + c);']],
    ['x += a;', ['x -= a;']],
    ['if (a) b = c;', ['if (!(a)) b = c;']],
    ['x = a ? b : c;', ['x = !(a) ? b : c;']],
    ['x = a ?? b;', ['x = ((a) && (b));']],
    ['x = a || b;', ['x = ((a) && (b));']],
    ['x = a && b;', ['x = ((a) || (b));']],
    ['x = true;', ['x = false;']],
    ['x = 0;', ['x = 1;']],
    ['x = 11n;', ['x = 10n;']],
    ['f(a);', [';']],
    ['await f(a);', [';']],
  ])('%s', (source, expected) => {
    expect(mutants(source)).toEqual(expected);
  });

  test.each([
    "x = 'a' + b;",
    "x += 'a';",
    'type X = 1 | true;',
    'x = { 1: a };',
    "import a from 'a';",
    'x = f(a);',
  ])('none of %s', (source) => expect(mutants(source)).toEqual([]));

  test('of ?? inside && keep the syntax valid', () => {
    expect(mutants('x = (a ?? b) && c;')).toEqual(['x = ((a ?? b) || (c));', 'x = (((a) && (b))) && c;']);
  });

  test('keep their identity when the file moves and its lines shift', () => {
    const source = 'if (a < b) f(1);\n  if (a < b) f(1);\n';
    const before = mutationsOf(new Map([[PATH, source]]));
    const after = mutationsOf(new Map([['src/runtime/b.ts', `// moved\n\n    ${source}`]]));
    expect(after.map(identityOf)).toEqual(before.map(identityOf));
    expect(new Set(before.map(identityOf)).size).toBe(before.length);
    expect(after[0]?.line).toBe((before[0]?.line as number) + 2);
  });
});

describe('the sample', () => {
  const source = Array.from({ length: 40 }, (_, index) => `x = a${index} < b;`).join('\n');
  const all = mutationsOf(new Map([[PATH, source]]));
  const drawn = (seed: number, from = all) => draw(from, new Map([['limiter', 10]]), seed).map(identityOf);

  test('is the same for the same seed, and another for another', () => {
    expect(drawn(1)).toHaveLength(10);
    expect(drawn(1)).toEqual(drawn(1));
    expect(drawn(1)).not.toEqual(drawn(2));
  });

  test('loses only the mutations that the source has lost', () => {
    const lost = drawn(1)[3] as string;
    const after = drawn(
      1,
      all.filter((one) => identityOf(one) !== lost),
    );
    expect(after.slice(0, 9)).toEqual(drawn(1).filter((one) => one !== lost));
  });

  test('is divided by the size of the rooms', () => {
    const shares = sharesOf(new Map(Object.entries({ codec: 100, h2: 100, storage: 300 })), 12);
    expect(Object.fromEntries(shares)).toEqual({ codec: 3, h2: 2, storage: 7 });
  });
});

test('the tests of a file are those of its room that import it', () => {
  const tests = new TestsOfRooms(
    new Map([
      ['src/limiter/a.ts', ''],
      ['src/limiter/b.ts', "import { a } from './a.js';"],
      ['src/limiter/c.ts', ''],
      ['src/policy/d.ts', "import { b } from '../limiter/b.js';"],
      ['test/unit/limiter/b.test.ts', "import { b } from '../../../src/limiter/b.js';"],
      ['test/unit/limiter/types.test.ts', "import type { A } from '../../../src/limiter/a.js';"],
      ['test/unit/policy/d.test.ts', "import { d } from '../../../src/policy/d.js';"],
      ['test/property/b.test.ts', "import { b } from '../../src/limiter/b.js';"],
      ['test/property/d.test.ts', "import { d } from '../../src/policy/d.js';"],
    ]),
  );
  expect(tests.of('src/limiter/a.ts')).toEqual(['test/unit/limiter/b.test.ts', 'test/property/b.test.ts']);
  expect(tests.of('src/policy/d.ts')).toEqual(['test/unit/policy/d.test.ts', 'test/property/d.test.ts']);
  expect(tests.of('src/limiter/c.ts')).toContain('test/unit/limiter/types.test.ts');
});

describe('results', () => {
  const result = (change: string, outcome: MutationResult['outcome']): MutationResult => ({
    ...{ path: PATH, line: 1, change, text: 'x', occurrence: 1, killedBy: undefined, seconds: 1 },
    outcome,
  });

  test('name what survives only afterwards', () => {
    const before = [
      result('a', 'killed'),
      result('b', 'timed out'),
      result('c', 'survived'),
      result('d', 'not run'),
    ];
    const after = ['a', 'b', 'c', 'd'].map((change) => result(change, 'survived'));
    expect(newSurvivors(before, after).map(({ change }) => change)).toEqual(['a', 'b']);
    expect(newSurvivors(before, before)).toEqual([]);
  });

  test('give the share of each room, in which time limits count and what did not run does not', () => {
    const outcomes = ['killed', 'timed out', 'survived', 'survived', 'not run'] as const;
    const [, limiter] = tableOf(outcomes.map((outcome) => result('a', outcome))).split('\n');
    expect(limiter?.split(/\s+/)).toEqual(['limiter', '5', '1', '1', '2', '1', '50', '%']);
  });
});

describe('options', () => {
  test('have defaults', () => {
    expect(readMutationOptions([])).toMatchObject({ seed: 1, count: 150, minutes: 60, workers: 2 });
  });

  test('refuse what is not a number', () => {
    expect(() => readMutationOptions(['--count', 'many'])).toThrow("--count: 'many' is not a whole number");
  });

  test('refuse to overwrite earlier results', () => {
    expect(() => readMutationOptions(['--against', './mutations.json'])).toThrow('name another file');
  });
});
