import { expect, test } from '@jest/globals';
import { columnsOf, entriesText, padded, tableLines, wrapped } from '../../../src/cli/table.js';
import { printableJson } from '../../../src/runtime/printable.js';
import { secondsText } from '../../../src/runtime/texts.js';

test.each([
  ['', 0],
  ['acme', 4],
  ['\u00e9\u00fc', 2],
  ['e\u0301', 1],
  ['\u65e5\u672c', 4],
  ['\ud83d\ude80', 2],
  ['a\u200bb', 2],
])('%j is %d columns wide', (text, columns) => expect(columnsOf(text)).toBe(columns));

test('cells are padded to columns, and tables are aligned', () => {
  expect([padded('\u65e5', 4), padded('7', 3, 'right'), padded('long', 2)]).toEqual([
    '\u65e5  ',
    '  7',
    'long',
  ]);
  const columns = [
    { heading: 'N', side: 'right' },
    { heading: 'WHO', side: 'left' },
  ] as const;
  expect(
    tableLines(columns, [
      ['10', 'a'],
      ['9', ''],
    ]),
  ).toEqual([' N  WHO', '10  a', ' 9']);
});

test('paragraphs are wrapped at words', () => {
  expect(wrapped('one two three', 8)).toEqual(['one two', 'three']);
  expect(wrapped('incomprehensible', 8)).toEqual(['incomprehensible']);
});

test.each([
  [0, '0s'],
  [0.01, '0.1s'],
  [6.34, '6.3s'],
  [9.96, '10s'],
  [59.2, '1m00s'],
  [598.2, '9m59s'],
  [3600, '1h00m'],
  [18_240, '5h04m'],
  [266_400, '3d02h'],
])('%d seconds are %s', (seconds, text) => expect(secondsText(seconds)).toBe(text));

test('text from other sources contains no control characters, and redactions stay readable', () => {
  expect(
    entriesText([
      { key: 'api_key', value: '[redacted sha256:0123abcd]' },
      { key: 'user', value: "o'neil" },
      { key: 'x', value: '\u001b' },
    ]),
  ).toBe("api_key=[redacted sha256:0123abcd] user='o'\\''neil' x=$'\\U0000001b'");
});

test('JSON keeps its value without control characters', () => {
  const value = { 'k\u009b31m': 'a\u001b[31m\u009b\u007f\u202e\u2028\n\ud83d\ude80\u{e0001}\u00e9' };
  const text = printableJson(value, 2);
  expect(text).toBe(
    String.raw`{
  "k\u009b31m": "a\u001b[31m\u009b\u007f\u202e\u2028\n${'\ud83d\ude80'}\udb40\udc01${'\u00e9'}"
}`,
  );
  expect(JSON.parse(text)).toEqual(value);
});
