/* The work that matching of regular expressions counts, and how a search continues in the next slice. */
import { describe, expect, test } from '@jest/globals';
import { EXCEEDED, MatchWork, unboundedWork } from '../../../../src/policy/match-work.js';
import { patternSize, RegexList } from '../../../../src/policy/values/regex-matcher.js';

function coldListOf(patterns: readonly string[]): RegexList<string> {
  const list = new RegexList<string>();
  for (const one of patterns) list.add([one], [patternSize(one) as number], one);
  return list;
}

/** Returns a compiled list, as after a load. */
function listOf(patterns: readonly string[]): RegexList<string> {
  const list = coldListOf(patterns);
  for (let set = 0; set < list.setCount; set++) list.compile(set);
  return list;
}

const SLICE_STEPS = 200_000;

/** Searches in slices until the value is decided. Returns the steps taken and the steps charged. */
function search(list: RegexList<string>, value: string, most = Number.POSITIVE_INFINITY) {
  const work = new MatchWork(0);
  let taken = 0;
  let charged = 0;
  let stretches = 0;
  for (;;) {
    work.remaining = SLICE_STEPS;
    work.exempt = 0;
    const found = list.find(value, work);
    stretches++;
    // Exceeds a slice by at most one or two states.
    expect(SLICE_STEPS - work.remaining).toBeLessThan(1.5 * SLICE_STEPS);
    taken += SLICE_STEPS - work.remaining;
    charged += SLICE_STEPS - work.remaining - work.exempt;
    if (found !== EXCEEDED || taken > most) return { found, taken, charged, stretches };
  }
}

/** Returns letters in a sequence with a long period. */
function mixed(letters: string, length: number, seed = 1): string {
  let state = seed;
  let text = '';
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    text += letters[(state >> 16) % letters.length];
  }
  return text;
}

describe('a search', () => {
  test('continues at its previous position, with the result of a search without interruption', () => {
    const patterns = ['.*x', '.*a.{12}b', '(ab|c|é|😀)*!', '.*yy'];
    for (const value of [
      `${mixed('abc', 60_000)}!`,
      `${'ab😀é'.repeat(40_000)}!`,
      `${'c'.repeat(300_000)}yy`,
    ]) {
      const { found, stretches } = search(listOf(patterns), value);
      expect(stretches).toBeGreaterThan(1);
      expect(found).toBe(listOf(patterns).find(value, unboundedWork()));
    }
  });

  test('of a cached value costs no steps', () => {
    const list = listOf(['a*', 'b*']);
    const work = new MatchWork(100);
    const value = 'b'.repeat(10_000);
    while (list.find(value, work) === EXCEEDED) work.remaining = 5000;
    const { remaining: left } = work;
    expect(list.find(value, work)).toBe('b*');
    expect(work.remaining).toBe(left);
  });

  test('of another value starts from the beginning', () => {
    const list = listOf(['a+b?']);
    const work = new MatchWork(1000);
    expect(list.find('a'.repeat(2000), work)).toBe(EXCEEDED);
    work.remaining = 1_000_000;
    expect(list.find(`${'a'.repeat(1999)}c`, work)).toBeUndefined();
    expect(list.find('a'.repeat(2000), work)).toBe('a+b?');
  });
});

describe('steps', () => {
  test('increase with the length of a hostile value, and stay within a bound', () => {
    const list = listOf(Array.from({ length: 10 }, (_, i) => `.*a.{100}b${i}`));
    search(list, mixed('ab', 500));
    const one = search(list, mixed('ab', 500, 7)).charged;
    const two = search(list, mixed('ab', 1000, 8)).charged;
    expect(two).toBeGreaterThan(1_000_000);
    expect(two / one).toBeLessThan(3);
    expect(search(list, mixed('ab', 60_000, 9), 500_000)).toMatchObject({ found: EXCEEDED });
  });

  test('for usual values are few once the automaton has its states', () => {
    const list = listOf(Array.from({ length: 1000 }, (_, i) => `/api/v[0-9]+/res${i}/[^/]+`));
    const value = (i: number) =>
      `/api/v1/res${(i * 7919) % 1000}/item${(i * 104_729) % 1_000_003}`.padEnd(200, 'x');
    for (let i = 0; i < 2000; i++) list.find(value(i), unboundedWork());
    for (let i = 2000; i < 2500; i++) {
      const work = new MatchWork(10_000);
      expect(list.find(value(i), work)).toBe(`/api/v[0-9]+/res${(i * 7919) % 1000}/[^/]+`);
    }
  });

  test('for the first values are free, so that the first caller is not denied', () => {
    const list = listOf(Array.from({ length: 1000 }, (_, i) => `.*/res${i}/.*`));
    const { taken, charged } = search(list, '/api/v1/res77/item12345');
    expect(taken).toBeGreaterThan(100_000);
    expect(charged).toBeLessThan(10_000);
  });
});

test('count for compiling, for a set of any size', () => {
  const list = coldListOf(Array.from({ length: 4 }, (_, i) => `${'a'.repeat(240)}${i}`));
  expect(list.setCount).toBe(1);
  const work = new MatchWork(1e9);
  expect(list.find('b', work)).toBeUndefined();
  // About 1,000 instructions are more than the rest of a slice, so the next set is compiled in the next slice.
  expect(1e9 - work.remaining).toBeGreaterThan(300_000);
  const again = new MatchWork(1e9);
  expect(list.find('b', again)).toBeUndefined();
  expect(1e9 - again.remaining).toBeLessThan(1000);
});
