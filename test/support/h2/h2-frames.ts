import { HeaderField } from '../../../src/h2/hpack/header-field.js';

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const TYPE = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;
export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;
export const PADDED = 8;
export const PRIORITY = 0x20;

/** Encodes a frame with any header (RFC 9113 section 4.1). */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes.writeUInt8(type, 3);
  bytes.writeUInt8(flags, 4);
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, 9);
  return bytes;
}

/** A received frame. */
export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Splits received bytes into frames. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);
  #skip: number;

  /** `skip` is the number of bytes before the first frame. */
  constructor(skip = 0) {
    this.#skip = skip;
  }

  /** Returns the frames that these bytes complete. */
  read(chunk: Uint8Array): RawFrame[] {
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    const bytes = Buffer.concat([this.#rest, chunk.subarray(skipped)]);
    const frames: RawFrame[] = [];
    let at = 0;
    while (at + 9 <= bytes.length) {
      const end = at + 9 + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      frames.push({
        type: bytes.readUInt8(at + 3),
        flags: bytes.readUInt8(at + 4),
        streamId: bytes.readUInt32BE(at + 5),
        payload: bytes.subarray(at + 9, end),
      });
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return frames;
  }
}

/** Returns the fields with which a gRPC call begins, for {@link block}. */
export function callFields(path: string): string[] {
  const pseudo = [':method: POST', ':scheme: http', `:path: ${path}`, ':authority: weir'];
  return [...pseudo, 'content-type: application/grpc', 'te: trailers'];
}

/** Encodes fields given as `name: value`, each as a literal without indexing (RFC 7541 section 6.2.2). */
export function block(...fields: string[]): Buffer {
  const parts: Buffer[] = [];
  for (const field of fields) {
    const colon = field.indexOf(':', 1);
    const value = Buffer.from(field.slice(colon + 1).trimStart(), 'latin1');
    parts.push(Buffer.of(0), text(Buffer.from(field.slice(0, colon), 'latin1')), text(value));
  }
  return Buffer.concat(parts);
}

function text(bytes: Buffer): Buffer {
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

export const REQUEST = [':method: POST', ':scheme: http', ':path: /call', ':authority: weir'];

/** Encodes the HEADERS of a well-formed request, followed by the fields of `more`. */
export function request(streamId: number, flags = 0, ...more: string[]): Buffer {
  return frame(TYPE.HEADERS, END_HEADERS | flags, streamId, block(...REQUEST, ...more));
}

export function headers(streamId: number, flags: number, ...fields: string[]): Buffer {
  return frame(TYPE.HEADERS, END_HEADERS | flags, streamId, block(...fields));
}

export function data(streamId: number, body: string | number, flags = 0): Buffer {
  return frame(
    TYPE.DATA,
    flags,
    streamId,
    typeof body === 'number' ? Buffer.alloc(body, 'x') : Buffer.from(body),
  );
}

/** Encodes a payload of 32-bit words. */
export function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
}

export function rst(streamId: number, code: number): Buffer {
  return frame(TYPE.RST_STREAM, 0, streamId, words(code));
}

export function windowUpdate(streamId: number, increment: number): Buffer {
  return frame(TYPE.WINDOW_UPDATE, 0, streamId, words(increment));
}

export function settings(...pairs: [identifier: number, value: number][]): Buffer {
  const payload = Buffer.alloc(6 * pairs.length);
  for (const [index, [identifier, value]] of pairs.entries()) {
    payload.writeUInt16BE(identifier, 6 * index);
    payload.writeUInt32BE(value, 6 * index + 2);
  }
  return frame(TYPE.SETTINGS, 0, 0, payload);
}

export const SETTINGS_ACK = frame(TYPE.SETTINGS, ACK, 0);

export function ping(payload = '01234567', flags = 0): Buffer {
  return frame(TYPE.PING, flags, 0, Buffer.from(payload));
}

/** Header fields of a gRPC response. */
export const OK_HEADERS = [
  new HeaderField(':status', '200'),
  new HeaderField('content-type', 'application/grpc', true),
];
export const OK_TRAILERS = [new HeaderField('grpc-status', '0', true)];
