import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RedisReplyError } from '../../../../src/storage/redis/connection/redis-error.js';
import type { ReplyBound } from '../../../../src/storage/redis/connection/reply-bound.js';
import { type Reply, RespReader } from '../../../../src/storage/redis/connection/resp-reader.js';
import { runs } from '../../../support/assert/runs.js';

const CASES: readonly (readonly [wire: string, replies: readonly Reply[]])[] = [
  ['+OK\r\n', ['OK']],
  ['+\r\n', ['']],
  [
    "-ERR wrong number of arguments for 'set'\r\n",
    [new RedisReplyError("ERR wrong number of arguments for 'set'")],
  ],
  [':0\r\n:-1\r\n:42\r\n', [0, -1, 42]],
  [':9007199254740991\r\n:-9007199254740991\r\n', [9007199254740991, -9007199254740991]],
  // The script's -1 - 9007199254740991, which is exact.
  [':-9007199254740992\r\n', [-9007199254740992]],
  ['$5\r\nhello\r\n$0\r\n\r\n', ['hello', '']],
  ['$8\r\na\r\nb\r\n\r\n\r\n', ['a\r\nb\r\n\r\n']],
  // Lengths are in bytes: an e with an acute accent has two.
  ['$3\r\n\u00e9!\r\n+\u20ac\r\n', ['\u00e9!', '\u20ac']],
  ['*0\r\n', [[]]],
  ['*3\r\n:1\r\n:22\r\n:-333\r\n+next\r\n', [[1, 22, -333], 'next']],
  ['*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n', [[1, 2, 3, 4]]],
];

/** The bound of each reply. */
const ASKED: ReplyBound = { integers: 4, textBytes: 10 };

function readerInto(replies: Reply[]): RespReader {
  return new RespReader(
    (reply) => replies.push(reply),
    () => ASKED,
  );
}

function read(chunks: readonly Buffer[]): Reply[] {
  const replies: Reply[] = [];
  const reader = readerInto(replies);
  for (const chunk of chunks) reader.read(chunk);
  return replies;
}

describe.each(CASES)('%j', (wire, expected) => {
  const bytes = Buffer.from(wire);

  test('in one chunk', () => {
    expect(read([bytes])).toEqual(expected);
  });

  test('byte by byte', () => {
    expect(read(Array.from(bytes, (byte) => Buffer.of(byte)))).toEqual(expected);
  });
});

test('in one stream, split at any position', () => {
  const bytes = Buffer.from(CASES.map(([wire]) => wire).join(''));
  const expected = CASES.flatMap(([, replies]) => replies);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 30 }), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
      expect(read(chunks)).toEqual(expected);
    }),
    runs(300),
  );
});

test.each([
  ['HTTP/1.1 400 Bad Request\r\n'],
  [':\r\n'],
  [':-\r\n'],
  [':12a\r\n'],
  [':12\rx'],
  [':1234567890123456789\r\n'],
  ['$3\r\nabcd\r\n'],
  [':9007199254740992\r\n'],
  [':-9007199254740993\r\n'],
  [':100000000000000000\r\n'],
  [`:${'0'.repeat(17)}`],
  ['$11\r\n'],
  ['$-1\r\n'],
  ['$x\r\n'],
  ['+hello world\r\n'],
  ['+hello world!'],
  ['*5\r\n'],
  ['*1048577\r\n'],
  ['*-1\r\n'],
  ['*1\r\n*1\r\n:1\r\n'],
  ['*1\r\n$1\r\na\r\n'],
  ['*1\r\n$-1\r\n'],
  ['*1\r\n+a\r\n'],
  ['*1\r\n-ERR a\r\n'],
  ['*2\r\n:1\r\n:9007199254740992\r\n'],
  ['%1\r\n+a\r\n+b\r\n'],
  [`+${'x'.repeat(70_000)}`],
  [`-${'x'.repeat(70_000)}`],
])('%j is malformed', (wire) => {
  expect(() => read([Buffer.from(wire)])).toThrow(/^malformed reply/);
});

test('a reply without a request is malformed from its first byte', () => {
  for (const wire of [':', '*', '$', '+', 'H']) {
    const reader = new RespReader(
      () => {},
      () => undefined,
    );
    expect(() => reader.read(Buffer.from(wire))).toThrow('malformed reply: no request was sent');
  }
});

test('a long error is truncated', () => {
  const [reply] = read([Buffer.from(`-ERR ${'x'.repeat(10_000)}\r\n`)]);
  expect((reply as Error).message).toBe(`ERR ${'x'.repeat(508)}`);
});

test('invalid bytes are refused or wait for more, but never hang', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        read([Buffer.from(bytes)]);
      } catch (error) {
        expect((error as Error).message).toMatch(/^malformed reply/);
      }
    }),
    runs(2000),
  );
});

test('keeps only the current element in memory', () => {
  const replies: Reply[] = [];
  const reader = readerInto(replies);
  reader.read(Buffer.from('*3\r\n:1\r\n:2'));
  reader.read(Buffer.from('2\r'));
  expect(replies).toEqual([]);
  reader.read(Buffer.from('\n:3\r\n'));
  expect(replies).toEqual([[1, 22, 3]]);
});

test.each([
  ['NOSCRIPT No matching script.', 'NOSCRIPT'],
  ['ERR', 'ERR'],
  ['it is broken', ''],
])('an error contains its code: %s', (text, code) => {
  const [reply] = read([Buffer.from(`-${text}\r\n`)]);
  expect(reply).toMatchObject({ message: text, code });
});

test('an error without a request is the reason why Redis closes the connection', () => {
  const reader = new RespReader(
    () => {},
    () => undefined,
  );
  reader.read(Buffer.from('-ERR max number of'));
  expect(() => reader.read(Buffer.from(' clients reached\r\n'))).toThrow(
    /^ERR max number of clients reached$/,
  );
});
