import { freeBuffer } from '../../runtime/free-buffer.js';
import type { H2Limits } from '../limits.js';
import { FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, INITIAL_WINDOW_BYTES } from './frame-type.js';
import { SETTING } from './settings.js';

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

  /** Returns the pending output, or undefined if it is empty. */
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
