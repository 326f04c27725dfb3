import { isAscii } from 'node:buffer';
import { freeBuffer } from '../runtime/free-buffer.js';

/** Texts of fewer bytes are decoded at once: it takes some 5 ns a byte where much of it is not ASCII. */
export const LONG_TEXT_BYTES = 64 * 1024;

/**
 * A long text in `bytes[start, end)`, as Buffer#toString decodes it, with U+FFFD for what is not UTF-8: decoded in
 * steps, put together in one. It is one flat string, as whoever looks at the first character of joined pieces would
 * copy them all. `pieceBytes`, at least 4, are decoded in one step.
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
  // No byte of UTF-8 becomes more than one unit of UTF-16. The memory is only touched as it is written.
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
 * The last place up to `at` where a text may be cut: none of its characters, nor what becomes one U+FFFD, goes on
 * behind it.
 */
export function cutBefore(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return end;
  // A character has one leading byte and at most three that continue it: behind four of these, nothing is open.
  for (let back = 0; back < 4; back++) if (((bytes[at - back] as number) & 0xc0) !== 0x80) return at - back;
  return at;
}
