import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { LogError, MAX_LINE_CHARACTERS, readLines } from '../../../src/replay/log-lines.js';
import { TempDir } from '../../support/process/temp-dir.js';

const folder = new TempDir();

/** Returns the numbered lines of a file. */
async function linesOf(
  content: string | Buffer,
  name = 'log',
): Promise<readonly (readonly [number, unknown])[]> {
  const path = join(folder.path, name);
  writeFileSync(path, content);
  const found: (readonly [number, unknown])[] = [];
  for await (const { first, lines } of readLines(path)) {
    for (const [at, line] of lines.entries()) found.push([first + at, line]);
  }
  return found;
}

test.each([
  ['', []],
  ['one', [[1, 'one']]],
  ['one\n', [[1, 'one']]],
  [
    '\ufeffone\r\n\r\ntwo',
    [
      [1, 'one\r'],
      [2, '\r'],
      [3, 'two'],
    ],
  ],
  [
    '\n\nthree\n',
    [
      [1, ''],
      [2, ''],
      [3, 'three'],
    ],
  ],
  [
    'ä\n\ufeff\n',
    [
      [1, 'ä'],
      [2, '\ufeff'],
    ],
  ],
])('reads the lines of %j', async (content, lines) => {
  expect(await linesOf(content)).toEqual(lines);
  expect(await linesOf(gzipSync(content))).toEqual(lines);
});

test('reads a compressed file of several parts', async () => {
  expect(await linesOf(Buffer.concat([gzipSync('one\ntw'), gzipSync('o\n')]))).toEqual([
    [1, 'one'],
    [2, 'two'],
  ]);
});

test('reads lines that begin in one chunk and end in another', async () => {
  const all = Array.from({ length: 20_000 }, (_, at) => `line ${at} ${'é'.repeat(at % 50)}`);
  const found = await linesOf(all.join('\n'));
  expect(found.map(([, line]) => line)).toEqual(all);
  expect(found.at(-1)?.[0]).toBe(20_000);
});

test('skips lines that are too long, and counts them', async () => {
  const long = 'x'.repeat(MAX_LINE_CHARACTERS + 1);
  const huge = 'y'.repeat(3_000_000);
  const longest = 'z'.repeat(MAX_LINE_CHARACTERS);
  expect(await linesOf([long, 'a', huge, 'b', longest, huge].join('\n'))).toEqual([
    [1, undefined],
    [2, 'a'],
    [3, undefined],
    [4, 'b'],
    [5, longest],
    [6, undefined],
  ]);
});

test('names a damaged file', async () => {
  const whole = gzipSync('one\n'.repeat(1000));
  await expect(linesOf(whole.subarray(0, whole.length - 20), 'cut.gz')).rejects.toThrow(LogError);
  await expect(linesOf(whole.subarray(0, whole.length - 20), 'cut.gz')).rejects.toThrow(
    /cut\.gz" is a damaged gzip file \(unexpected end of file\); fetch it again/,
  );
});
