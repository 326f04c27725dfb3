import { isAscii } from 'node:buffer';
import { freeBuffer } from '../runtime/free-buffer.js';

/**
 * Minimum length in bytes of strings that are decoded in steps. A byte takes about 5 ns if much of the string is not
 * ASCII.
 */
export const LONG_TEXT_BYTES = 64 * 1024;

/**
 * Decodes a long string in `bytes[start, end)` in steps, as Buffer#toString does, with U+FFFD for invalid UTF-8. The
 * result is one flat string: if pieces were joined, reading the first character would copy all of them. Each step
 * decodes `pieceBytes`, which must be at least 4.
 */
export function* textSteps(
  bytes: Uint8Array,
  start: number,
  end: number,
  pieceBytes = LONG_TEXT_BYTES,
): Generator<void, string> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isAscii(buffer.subarray(start, end))) {
    yield;
    const text = buffer.toString('latin1', start, end);
    yield;
    return text;
  }
  // A byte of UTF-8 becomes at most one unit of UTF-16. The memory is touched only when it is written.
  const units = Buffer.allocUnsafeSlow(2 * (end - start));
  let unitsEnd = 0;
  for (let at = start; at < end; ) {
    const cut = cutBefore(bytes, at + pieceBytes, end);
    unitsEnd += units.write(buffer.toString('utf8', at, cut), unitsEnd, 'utf16le');
    at = cut;
    yield;
  }
  const text = units.toString('utf16le', 0, unitsEnd);
  freeBuffer(units);
  yield;
  return text;
}

/**
 * Returns the last offset up to `at` at which the text may be split, so that no character and no sequence that becomes
 * one U+FFFD is divided.
 */
function cutBefore(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return end;
  // A character has one leading byte and at most three continuation bytes. After four continuation bytes, no character
  // is incomplete.
  for (let back = 0; back < 4; back++) if (((bytes[at - back] as number) & 0xc0) !== 0x80) return at - back;
  return at;
}
