import { expect, test } from '@jest/globals';
import { BodyBuffer } from '../../../src/http/body-buffer.js';

/** A body in which each position is recognisable. */
const BODY = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, at) => (at * 7919) >> 5));

function piecesOf(lengths: Iterable<number>): readonly Buffer[] {
  const pieces = new BodyBuffer();
  let at = 0;
  for (const length of lengths) {
    pieces.add(BODY.subarray(at, at + length));
    at += length;
    if (at >= BODY.length) break;
  }
  return pieces.end();
}

function* turns(...lengths: number[]): Generator<number> {
  for (;;) yield* lengths;
}

test.each([
  ['a byte each', [1]],
  ['less than what is kept as it is', [4095]],
  ['a byte between long ones', [4096, 1]],
  ['long ones', [65_536]],
  ['all lengths', [1, 3000, 70_000, 2, 5000]],
])('a body in pieces of %s is returned unchanged, in few pieces', (_, lengths) => {
  const pieces = piecesOf(turns(...lengths));
  expect(Buffer.concat(pieces).equals(BODY)).toBe(true);
  expect(pieces.length).toBeLessThan(150);
  const memory = pieces.map((piece) =>
    piece.buffer === BODY.buffer ? piece.length : piece.buffer.byteLength,
  );
  expect(memory.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(2 * BODY.length);
});

test('a short body uses little memory, and an empty body none', () => {
  expect(new BodyBuffer().end()).toEqual([]);
  const pieces = new BodyBuffer();
  pieces.add(Buffer.from('{}'));
  const [only] = pieces.end();
  expect(String(only)).toBe('{}');
  expect(only?.buffer.byteLength).toBe(1024);
});
