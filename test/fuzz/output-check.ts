import { CLIENT_PREFACE, FLAG, FRAME_TYPE } from '../../src/h2/frames.js';
import { HpackDecoder } from '../../src/h2/hpack/decoder.js';

const HEADER_TABLE_BYTES = 4096;
const DEFAULT_WINDOW = 65_535;
const DEFAULT_FRAME = 16_384;
const INITIAL_WINDOW_SETTING = 4;
const MAX_FRAME_SETTING = 5;
const NONE = Buffer.alloc(0);

/**
 * Upper bounds of the frames and bytes that a client with the input `input` allows the server to send, whichever of the
 * client's frames were accepted.
 */
class Allowance {
  frameBytes = DEFAULT_FRAME;
  connectionBytes = DEFAULT_WINDOW;
  private initialBytes = DEFAULT_WINDOW;
  private readonly increments = new Map<number, number>();

  constructor(input: Buffer) {
    for (let at = CLIENT_PREFACE.length; at + 9 <= input.length; at += 9 + input.readUIntBE(at, 3)) {
      const payload = input.subarray(at + 9, at + 9 + input.readUIntBE(at, 3));
      const type = input.readUInt8(at + 3);
      if (type === FRAME_TYPE.SETTINGS) this.takeSettings(payload);
      if (type !== FRAME_TYPE.WINDOW_UPDATE || payload.length !== 4) continue;
      const id = input.readUInt32BE(at + 5) & 0x7fff_ffff;
      const increment = payload.readUInt32BE(0) & 0x7fff_ffff;
      if (id === 0) this.connectionBytes += increment;
      else this.increments.set(id, (this.increments.get(id) ?? 0) + increment);
    }
  }

  streamBytes(id: number): number {
    return this.initialBytes + (this.increments.get(id) ?? 0);
  }

  private takeSettings(payload: Buffer): void {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const name = payload.readUInt16BE(at);
      const value = payload.readUInt32BE(at + 2);
      if (name === INITIAL_WINDOW_SETTING) this.initialBytes = Math.max(this.initialBytes, value);
      if (name === MAX_FRAME_SETTING) this.frameBytes = Math.max(this.frameBytes, value);
    }
  }
}

interface StreamOutput {
  headers: boolean;
  /** Whether END_STREAM or RST_STREAM was sent. */
  over: boolean;
  dataBytes: number;
}

/**
 * Throws if `output` is not valid output of an HTTP/2 server for the client input `input`. Returns the number of
 * frames.
 */
export function checkOutput(output: Buffer, input: Buffer): number {
  if (output.length === 0 || output.toString('latin1', 0, 5) === 'HTTP/') return 0;
  return new OutputCheck(new Allowance(input)).run(output);
}

class OutputCheck {
  private readonly allowance: Allowance;
  private readonly decoder = new HpackDecoder({ maxTableBytes: HEADER_TABLE_BYTES, maxListBytes: 1_000_000 });
  private readonly streams = new Map<number, StreamOutput>();
  private connectionBytes = 0;
  /** The header block that the next frame must continue. */
  private block: { readonly id: number; bytes: Buffer } | undefined;
  private finished = false;

  constructor(allowance: Allowance) {
    this.allowance = allowance;
  }

  run(output: Buffer): number {
    let frames = 0;
    let at = 0;
    while (at < output.length) {
      if (at + 9 > output.length) throw new Error('the output ends inside a frame header');
      const length = output.readUIntBE(at, 3);
      const type = output.readUInt8(at + 3);
      if (frames === 0 && type !== FRAME_TYPE.SETTINGS)
        throw new Error('the output does not begin with SETTINGS');
      if (at + 9 + length > output.length) throw new Error('the output ends inside a frame');
      if (length > this.allowance.frameBytes) throw new Error(`a frame of ${length} bytes`);
      if (this.finished) throw new Error('a frame after a GOAWAY with an error');
      const payload = output.subarray(at + 9, at + 9 + length);
      this.take(type, output.readUInt8(at + 4), output.readUInt32BE(at + 5), payload);
      at += 9 + length;
      frames += 1;
    }
    if (this.block !== undefined) throw new Error('the output ends inside a header block');
    return frames;
  }

  private take(type: number, flags: number, id: number, payload: Buffer): void {
    if (this.block !== undefined && (type !== FRAME_TYPE.CONTINUATION || id !== this.block.id))
      throw new Error('a frame inside of a header block');
    switch (type) {
      case FRAME_TYPE.DATA:
        this.takeData(flags, id, payload);
        return;
      case FRAME_TYPE.HEADERS:
        this.block = { id, bytes: NONE };
        this.startHeaders(flags, id);
        this.takeFragment(flags, payload);
        return;
      case FRAME_TYPE.CONTINUATION:
        this.takeFragment(flags, payload);
        return;
      case FRAME_TYPE.RST_STREAM:
        if (id % 2 === 0 || payload.length !== 4) throw new Error(`a bad RST_STREAM on stream ${id}`);
        this.stream(id).over = true;
        return;
      case FRAME_TYPE.WINDOW_UPDATE:
        if (payload.length !== 4 || payload.readInt32BE(0) <= 0) throw new Error('a bad WINDOW_UPDATE');
        return;
      case FRAME_TYPE.SETTINGS:
        if (id !== 0 || payload.length % 6 !== 0) throw new Error('bad SETTINGS');
        return;
      case FRAME_TYPE.PING:
        if (id !== 0 || payload.length !== 8) throw new Error('a bad PING');
        return;
      case FRAME_TYPE.GOAWAY:
        if (id !== 0 || payload.length < 8) throw new Error('a bad GOAWAY');
        this.finished = payload.readUInt32BE(4) !== 0;
        return;
      default:
        throw new Error(`a frame of type ${type}`);
    }
  }

  private stream(id: number): StreamOutput {
    if (id % 2 === 0) throw new Error(`a frame on stream ${id}`);
    const known = this.streams.get(id);
    if (known !== undefined) return known;
    const stream = { headers: false, over: false, dataBytes: 0 };
    this.streams.set(id, stream);
    return stream;
  }

  private startHeaders(flags: number, id: number): void {
    const stream = this.stream(id);
    const endStream = (flags & FLAG.END_STREAM) !== 0;
    if (stream.over) throw new Error(`HEADERS on stream ${id}, which is over`);
    if (stream.headers && !endStream) throw new Error(`HEADERS inside of the response on stream ${id}`);
    stream.over = endStream;
  }

  private takeFragment(flags: number, payload: Buffer): void {
    const { block } = this;
    if (block === undefined) throw new Error('CONTINUATION without a header block');
    block.bytes = block.bytes.length === 0 ? payload : Buffer.concat([block.bytes, payload]);
    if ((flags & FLAG.END_HEADERS) === 0) return;
    this.block = undefined;
    const list = this.decoder.decode(block.bytes, 0, block.bytes.length);
    if (list === undefined) throw new Error(`a header block that cannot be read: ${this.decoder.failure}`);
    const stream = this.stream(block.id);
    if (!stream.headers && list.fields[0] !== ':status') throw new Error('a response without :status');
    if (stream.headers && list.fields.includes(':status')) throw new Error('trailers with :status');
    stream.headers = true;
  }

  private takeData(flags: number, id: number, payload: Buffer): void {
    const stream = this.stream(id);
    if (stream.over) throw new Error(`DATA on stream ${id}, which is over`);
    if (!stream.headers) throw new Error(`DATA before HEADERS on stream ${id}`);
    stream.over = (flags & FLAG.END_STREAM) !== 0;
    stream.dataBytes += payload.length;
    this.connectionBytes += payload.length;
    if (stream.dataBytes > this.allowance.streamBytes(id)) throw new Error(`too much DATA on stream ${id}`);
    if (this.connectionBytes > this.allowance.connectionBytes) throw new Error('too much DATA');
  }
}
