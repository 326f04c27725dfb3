import { expect, test } from '@jest/globals';
import { UNSEEN } from '../../src/page/text/shown-text.js';
import { printable, printableLine, printableLines, UNPRINTABLE } from '../../src/printable.js';

const range = (first: number, last: number): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => String.fromCodePoint(first + at));
const STEERING = [
  ...range(0, 0x1f),
  ...range(0x7f, 0x9f),
  ...['\u00ad', '\u061c', '\u180e', '\ufeff', '\u2028', '\u2029', '\ue000', '\ud800', '\u{e0001}'],
  ...range(0x200b, 0x200f),
  ...range(0x202a, 0x202e),
  ...range(0x2060, 0x206f),
];

test('no control, mark of direction, separator or invisible character is printed', () => {
  for (const character of STEERING) {
    expect(printable(`a${character}b`)).toBe('a\ufffdb');
    expect(printableLine(`a${character}b`)).toMatch(/^a(?:\\u[\da-f]{4}){1,2}b$/);
    expect(printableLines(`a${character}b`)).toBe(
      character === '\n' ? 'a\nb' : printableLine(`a${character}b`),
    );
  }
});

test('what is seen stays', () => {
  const text = 'plain, é, e\u0301, 日本, عربي, עברית, 🚀, "quoted" \\';
  for (const made of [printable, printableLine, printableLines]) expect(made(text)).toBe(text);
});

test('JSON stays the same JSON', () => {
  const value = STEERING.join('x');
  expect(JSON.parse(printableLines(JSON.stringify({ [value]: value })))).toEqual({ [value]: value });
});

test('the page holds the same characters unseen', () => {
  expect(UNSEEN.source).toBe(UNPRINTABLE.source);
});
