/** Frame types (RFC 9113 section 6). */
export const FRAME_TYPE = {
  DATA: 0x0,
  HEADERS: 0x1,
  PRIORITY: 0x2,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
  CONTINUATION: 0x9,
} as const;

/** Frame flags; ACK (SETTINGS, PING) and END_STREAM (DATA, HEADERS) share a bit. */
export const FLAG = {
  ACK: 0x1,
  END_STREAM: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const;

/** Length, type, flags, stream identifier (RFC 9113 section 4.1). */
export const FRAME_HEADER_BYTES = 9;

/** The client connection preface (RFC 9113 section 3.4). */
export const CLIENT_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Defaults that apply until SETTINGS are received (RFC 9113 section 6.5.2). */
export const INITIAL_WINDOW_BYTES = 65_535;
export const MIN_MAX_FRAME_BYTES = 16_384;
export const MAX_MAX_FRAME_BYTES = 16_777_215;

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
