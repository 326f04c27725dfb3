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
