import { FLAG } from './frame-type.js';

/** Reads a 32-bit integer in network byte order. The caller has checked that the bytes exist. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  );
}

/** Reads the 31 bits of a stream identifier or window increment. Ignores the reserved bit (RFC 9113 section 4.1). */
export function readUint31(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) & 0x7f) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}

/**
 * Returns the number of padding bytes at the end of a DATA or HEADERS payload `bytes[start, end)` with the PADDED flag,
 * not counting the length byte. Returns -1 if the padding fills or exceeds the payload, which is a PROTOCOL_ERROR (RFC
 * 9113 section 6.1).
 */
export function paddingLength(bytes: Uint8Array, start: number, end: number): number {
  if (start >= end) return -1;
  const length = bytes[start] as number;
  return start + 1 + length > end ? -1 : length;
}

/**
 * Returns the number of bytes before the header block in a HEADERS frame: pad length and priority (RFC 9113 section
 * 6.2).
 */
export function headersPrefixLength(flags: number): number {
  return ((flags & FLAG.PADDED) !== 0 ? 1 : 0) + ((flags & FLAG.PRIORITY) !== 0 ? 5 : 0);
}
