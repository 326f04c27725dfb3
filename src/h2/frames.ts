import { freeBuffer } from '../runtime/free-buffer.js';
import { ConnectionFailure, ERROR_CODE } from './failure.js';
import type { H2Limits } from './limits.js';

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
const MAX_MAX_FRAME_BYTES = 16_777_215;

/** Maximum size of a flow control window in octets (RFC 9113 section 6.9.1). */
export const MAX_WINDOW_BYTES = 0x7fff_ffff;

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

const EMPTY = Buffer.alloc(0);
/** Size of the first slab of a connection. Small, because most connections are idle. */
const FIRST_SLAB_BYTES = 2048;
/** Maximum slab size. The size doubles each time a slab is used up. */
const LARGEST_SLAB_BYTES = 65_536;

/**
 * Output of one connection, in slabs. Bytes that were handed out are never changed; the rest of the slab is used for
 * later output:
 *
 *     slab:  | handed out | pending        | free        |
 *                         start            end           bytes.length
 */
export class OutputBuffer {
  /** The current slab. To write, call {@link reserve}, write at {@link end}, and advance {@link end}. */
  bytes: Buffer = EMPTY;
  end = 0;
  #start = 0;
  #slabBytes = FIRST_SLAB_BYTES / 2;

  /** Number of pending bytes. */
  get length(): number {
    return this.end - this.#start;
  }

  /** Reserves space for `octets` more bytes after {@link end}, and returns {@link end}. May replace {@link bytes}. */
  reserve(octets: number): number {
    if (this.bytes.length - this.end < octets) this.#nextSlab(octets);
    return this.end;
  }

  /** Undefined if no output is pending. */
  take(): Buffer | undefined {
    if (this.end === this.#start) return undefined;
    const pending = this.bytes.subarray(this.#start, this.end);
    this.#start = this.end;
    if (this.bytes.length <= LARGEST_SLAB_BYTES) return pending;
    // A slab that was enlarged for a large response is not reused for small ones. Half of it may be unused, and the
    // output that was handed out may wait for a long time, so the output is copied.
    const cut = Buffer.allocUnsafeSlow(pending.length);
    pending.copy(cut);
    freeBuffer(this.bytes);
    this.clear();
    return cut;
  }

  /** Frees a slab without pending output. The next slab is small again. */
  trim(): void {
    if (this.length > 0) return;
    this.clear();
    this.#slabBytes = FIRST_SLAB_BYTES / 2;
  }

  /** Discards the pending output. */
  clear(): void {
    this.bytes = EMPTY;
    this.#start = 0;
    this.end = 0;
  }

  #nextSlab(octets: number): void {
    const pending = this.end - this.#start;
    if (this.#slabBytes < LARGEST_SLAB_BYTES) this.#slabBytes *= 2;
    const next = Buffer.allocUnsafeSlow(Math.max(this.#slabBytes, 2 * (pending + octets)));
    this.bytes.copy(next, 0, this.#start, this.end);
    if (this.#start === 0) freeBuffer(this.bytes);
    this.bytes = next;
    this.#start = 0;
    this.end = pending;
  }
}

/** Maximum length of the debug text of a GOAWAY, in bytes. Longer text is truncated. */
const MAX_DEBUG_BYTES = 256;

/** Writes a frame header (RFC 9113 section 4.1) at `at`. */
export function writeFrameHeader(
  bytes: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  writeUint32(bytes, at + 5, streamId);
}

/** Writes the low 32 bits of `value` at `at`, in network byte order (RFC 9113 section 2.2). */
function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Writes RST_STREAM (RFC 9113 section 6.4). */
export function writeRstStream(output: OutputBuffer, streamId: number, errorCode: number): void {
  writeWord(output, FRAME_TYPE.RST_STREAM, streamId, errorCode);
}

/** Writes WINDOW_UPDATE (RFC 9113 section 6.9). Stream 0 is the connection. */
export function writeWindowUpdate(output: OutputBuffer, streamId: number, increment: number): void {
  writeWord(output, FRAME_TYPE.WINDOW_UPDATE, streamId, increment);
}

function writeWord(output: OutputBuffer, type: number, streamId: number, word: number): void {
  const at = output.reserve(FRAME_HEADER_BYTES + 4);
  writeFrameHeader(output.bytes, at, 4, type, 0, streamId);
  writeUint32(output.bytes, at + FRAME_HEADER_BYTES, word);
  output.end = at + FRAME_HEADER_BYTES + 4;
}

/** Writes PING (RFC 9113 section 6.7) with the 8 bytes `payload[from, from + 8)`. */
export function writePing(output: OutputBuffer, ack: boolean, payload: Uint8Array, from: number): void {
  const at = output.reserve(FRAME_HEADER_BYTES + 8);
  writeFrameHeader(output.bytes, at, 8, FRAME_TYPE.PING, ack ? FLAG.ACK : 0, 0);
  for (let index = 0; index < 8; index++) {
    output.bytes[at + FRAME_HEADER_BYTES + index] = payload[from + index] as number;
  }
  output.end = at + FRAME_HEADER_BYTES + 8;
}

/** Writes GOAWAY (RFC 9113 section 6.8). `debug` is encoded as UTF-8. */
export function writeGoaway(
  output: OutputBuffer,
  lastStreamId: number,
  errorCode: number,
  debug: string,
): void {
  const text = Buffer.from(debug).subarray(0, MAX_DEBUG_BYTES);
  const at = output.reserve(FRAME_HEADER_BYTES + 8 + text.length);
  writeFrameHeader(output.bytes, at, 8 + text.length, FRAME_TYPE.GOAWAY, 0, 0);
  writeUint32(output.bytes, at + FRAME_HEADER_BYTES, lastStreamId);
  writeUint32(output.bytes, at + FRAME_HEADER_BYTES + 4, errorCode);
  output.bytes.set(text, at + FRAME_HEADER_BYTES + 8);
  output.end = at + FRAME_HEADER_BYTES + 8 + text.length;
}

/** Writes the acknowledgement of the peer's SETTINGS (RFC 9113 section 6.5.3). */
export function writeSettingsAck(output: OutputBuffer): void {
  const at = output.reserve(FRAME_HEADER_BYTES);
  writeFrameHeader(output.bytes, at, 0, FRAME_TYPE.SETTINGS, FLAG.ACK, 0);
  output.end = at + FRAME_HEADER_BYTES;
}

/**
 * Writes our SETTINGS, and the WINDOW_UPDATE that raises the connection's window above the initial 65,535: "The
 * connection flow-control window can only be changed using WINDOW_UPDATE frames" (RFC 9113 section 6.9.2).
 */
export function writeServerPreface(output: OutputBuffer, limits: H2Limits): void {
  const settings = [
    [SETTING.HEADER_TABLE_SIZE, limits.headerTableBytes],
    [SETTING.MAX_CONCURRENT_STREAMS, limits.maxConcurrentStreams],
    [SETTING.INITIAL_WINDOW_SIZE, limits.streamWindowBytes],
    [SETTING.MAX_FRAME_SIZE, limits.maxFrameBytes],
    [SETTING.MAX_HEADER_LIST_SIZE, limits.maxHeaderListBytes],
  ] as const;
  let at = output.reserve(FRAME_HEADER_BYTES + 6 * settings.length);
  writeFrameHeader(output.bytes, at, 6 * settings.length, FRAME_TYPE.SETTINGS, 0, 0);
  at += FRAME_HEADER_BYTES;
  for (const [identifier, value] of settings) {
    output.bytes[at] = 0;
    output.bytes[at + 1] = identifier;
    writeUint32(output.bytes, at + 2, value);
    at += 6;
  }
  output.end = at;
  const raise = limits.connectionWindowBytes - INITIAL_WINDOW_BYTES;
  if (raise > 0) writeWindowUpdate(output, 0, raise);
}

/** Identifiers of settings (RFC 9113 section 6.5.2). */
const SETTING = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
} as const;

/** Bytes of one setting: a 16-bit identifier and a 32-bit value. */
const SETTING_BYTES = 6;

const PARTIAL = new ConnectionFailure(
  ERROR_CODE.FRAME_SIZE_ERROR,
  'the length of a SETTINGS frame is not a multiple of 6 bytes',
);
const BAD_PUSH = new ConnectionFailure(ERROR_CODE.PROTOCOL_ERROR, 'SETTINGS_ENABLE_PUSH is neither 0 nor 1');
const BAD_WINDOW = new ConnectionFailure(
  ERROR_CODE.FLOW_CONTROL_ERROR,
  'SETTINGS_INITIAL_WINDOW_SIZE is above 2^31-1',
);
const BAD_FRAME_SIZE = new ConnectionFailure(
  ERROR_CODE.PROTOCOL_ERROR,
  'SETTINGS_MAX_FRAME_SIZE is not between 16384 and 16777215',
);

/** The peer's settings that apply to a server without push, with the defaults of RFC 9113 section 6.5.2. */
export class PeerSettings {
  headerTableBytes = 4096;
  /** Lowest value of {@link headerTableBytes} in the last frame. */
  minHeaderTableBytes = 4096;
  initialWindowBytes = INITIAL_WINDOW_BYTES;
  maxFrameBytes = MIN_MAX_FRAME_BYTES;

  /**
   * Reads the payload `bytes[start, end)` of a SETTINGS frame. If a setting occurs twice, the later value applies (RFC
   * 9113 section 6.5.3: values are processed in order). An intermediate value matters only for a smaller header table,
   * because it evicts entries. Unknown settings are ignored.
   */
  read(bytes: Uint8Array, start: number, end: number): ConnectionFailure | undefined {
    if ((end - start) % SETTING_BYTES !== 0) return PARTIAL;
    this.minHeaderTableBytes = this.headerTableBytes;
    for (let at = start; at < end; at += SETTING_BYTES) {
      const identifier = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
      const value = readUint32(bytes, at + 2);
      switch (identifier) {
        case SETTING.HEADER_TABLE_SIZE:
          this.headerTableBytes = value;
          this.minHeaderTableBytes = Math.min(this.minHeaderTableBytes, value);
          break;
        case SETTING.ENABLE_PUSH:
          if (value > 1) return BAD_PUSH;
          break;
        case SETTING.INITIAL_WINDOW_SIZE:
          if (value > MAX_WINDOW_BYTES) return BAD_WINDOW;
          this.initialWindowBytes = value;
          break;
        case SETTING.MAX_FRAME_SIZE:
          if (value < MIN_MAX_FRAME_BYTES || value > MAX_MAX_FRAME_BYTES) return BAD_FRAME_SIZE;
          this.maxFrameBytes = value;
          break;
        default:
      }
    }
    return undefined;
  }
}
