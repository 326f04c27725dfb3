import { expect, test } from '@jest/globals';
import { visibleText } from '../../../src/page/text/shown-text.js';
import { printable, printableLine, printableLines } from '../../../src/runtime/printable.js';

const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => String.fromCodePoint(first + at));
const UNPRINTABLE_CHARACTERS = [
  ...range(0, 0x1f),
  ...range(0x7f, 0x9f),
  ...['\u00ad', '\u061c', '\u180e', '\ufeff', '\u2028', '\u2029', '\ue000', '\ud800', '\u{e0001}'],
  ...range(0x200b, 0x200f),
  ...range(0x202a, 0x202e),
  ...range(0x2060, 0x206f),
];

test('control, bidirectional, separator and invisible characters are not printed', () => {
  for (const character of UNPRINTABLE_CHARACTERS) {
    expect(printable(`a${character}b`)).toBe('a\ufffdb');
    expect(printableLine(`a${character}b`)).toMatch(/^a(?:\\u[\da-f]{4}){1,2}b$/);
    expect(printableLines(`a${character}b`)).toBe(
      character === '\n' ? 'a\nb' : printableLine(`a${character}b`),
    );
  }
});

test('visible characters are not changed', () => {
  const text = 'plain, é, e\u0301, 日本, عربي, עברית, 🚀, "quoted" \\';
  for (const convert of [printable, printableLine, printableLines]) expect(convert(text)).toBe(text);
});

test('JSON keeps its value', () => {
  const value = UNPRINTABLE_CHARACTERS.join('x');
  expect(JSON.parse(printableLines(JSON.stringify({ [value]: value })))).toEqual({ [value]: value });
});

test('the page shows the same characters, except for joiners in words and emoji', () => {
  const isJoiner = (character: string) => character === '\u200c' || character === '\u200d';
  for (const character of UNPRINTABLE_CHARACTERS) {
    expect([character, visibleText(character) === character]).toEqual([character, isJoiner(character)]);
  }
});
