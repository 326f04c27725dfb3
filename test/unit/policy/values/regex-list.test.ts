import { describe, expect, test } from '@jest/globals';
import { MatchMemo, MatchWork } from '../../../../src/policy/match-work.js';
import { patternCost, RegexList } from '../../../../src/policy/values/regex-list.js';

/** Patterns for which JavaScript's own engine would need years, each with a string for which it does. */
const HOSTILE: readonly (readonly [string, (length: number) => string])[] = [
  ['(a+)+b', (length) => 'a'.repeat(length)],
  ['(a|aa)+b', (length) => 'a'.repeat(length)],
  ['(.*)\\.(.*)\\.(.*)\\.(.*)x', (length) => '.'.repeat(length)],
  ['(a?){50}a{50}b', (length) => 'a'.repeat(length)],
  ['.*a.{12}b', (length) => mixed('ab', length)],
  ['(?i)(k|ſ|K|s)+[^\\pL]', (length) => mixed('KſsS', length)],
  ['(\\pL+\\b)*!', (length) => mixed('aé😀 ', length)],
];

/** Returns letters in a sequence with a long period. */
function mixed(letters: string, length: number): string {
  const all = [...letters];
  let state = 1;
  let text = '';
  while (text.length < length - 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    text += all[(state >> 16) % all.length];
  }
  return text;
}

function find<Owner>(list: RegexList<Owner>, value: string): Owner | undefined {
  return list.find(value, Buffer.byteLength(value), new MatchWork());
}

describe('hostile values', () => {
  // If the time doubled with each character, none of these would end.
  test.each(HOSTILE)('%s is matched to the end of a long value', (pattern, textOf) => {
    const list = new RegexList<true>();
    for (let i = 0; i < 40; i++)
      list.add([`${pattern}${i}`], [patternCost(`${pattern}${i}`) as number], true);
    expect(find(list, textOf(4096))).toBeUndefined();
  });
});

describe('a pattern', () => {
  test.each([
    '',
    'a|b',
    '(?i)x',
    '\\Aab\\z',
    '[[:^alpha:]]',
    '\\pN{3}',
    '(?s).*',
    '(?U)a*',
    'a{1000}'.slice(0, 4),
  ])('%j is valid', (pattern) => {
    expect(typeof patternCost(pattern)).toBe('number');
  });

  test.each([
    '(a{1000}){1000}',
    '((a{100}){100}){100}',
    '(a{30}){34}',
    '(\\pL{10}){200}',
    '(?<=a)b',
    '(a)\\1',
    '('.repeat(900),
  ])('%j is refused', (pattern) => {
    expect(typeof patternCost(pattern)).toBe('string');
  });
});

describe('the cache', () => {
  test('contains the recent results of each level', () => {
    const memo = new MatchMemo<number>();
    const [one, other] = [{}, {}];
    memo.set(one, 'a', 1);
    expect(memo.get(one, 'a')).toBe(1);
    expect(memo.get(other, 'a')).toBeUndefined();
    for (let i = 0; i < 20_000; i++) {
      memo.set(other, `flood ${i}`, i);
      if (i % 4000 === 0) expect(memo.get(one, 'a')).toBe(1);
    }
    expect(memo.get(other, 'flood 19999')).toBe(19_999);
    expect(memo.get(other, 'flood 100')).toBeUndefined();
    for (let i = 0; i < 10_000; i++) memo.set(other, `more ${i}`, i);
    expect(memo.get(one, 'a')).toBeUndefined();
  });

  test('contains no long values', () => {
    const memo = new MatchMemo<number>();
    memo.set(memo, 'a'.repeat(256), 1);
    memo.set(memo, 'a'.repeat(257), 1);
    expect(memo.get(memo, 'a'.repeat(256))).toBe(1);
    expect(memo.get(memo, 'a'.repeat(257))).toBeUndefined();
  });
});
