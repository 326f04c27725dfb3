import type { Duplex } from 'node:stream';
import { CLIENT_PREFACE, FLAG, FRAME_HEADER_BYTES, FRAME_TYPE, readUint31 } from '../../../src/h2/frames.js';
import { HpackDecoder } from '../../../src/h2/hpack/decoder.js';
import { type CallTemplate, writeCall } from './call-template.js';

const OUTPUT_BYTES = 1 << 18;
/** Bytes that the server may send before the next WINDOW_UPDATE, enough for a million answers. */
const RECEIVE_WINDOW = 1 << 30;
/** Maximum number of calls in flight on a connection. A power of two. */
const MAX_CALLS = 1 << 14;
/** The first field of a RateLimitResponse must be overall_code, a varint. */
const OVERALL_CODE_TAG = 0x08;
const OVER_LIMIT = 2;
/** The key and the tag of a hold token in the dynamic metadata of an answer. */
const TOKEN_PREFIX = Buffer.from('\x0a\x04hold\x12', 'latin1');
/** Maximum length of a message that ends a request. */
const MAX_END_BYTES = 1024;

/** Receives the events of a connection. */
export interface CallObserver {
  /**
   * A call got its complete answer, with grpc-status 0 and a decision. `startMicros` is the argument of {@link
   * ClientConnection.call}.
   */
  answered(startMicros: number, overLimit: boolean): void;
  /** All received data was processed. The connection sends calls from this function in one write. */
  chunkRead(connection: ClientConnection): void;
  /** A call or the connection failed. */
  failed(reason: string): void;
}

/**
 * Client side of an HTTP/2 connection that sends calls from a template, and checks every answer. It supports only the
 * parts of RFC 9113 that it needs, and fails if the server uses other parts.
 */
export class ClientConnection {
  private readonly socket: Duplex;
  private readonly template: CallTemplate;
  private readonly observer: CallObserver;
  private readonly decoder = new HpackDecoder({ maxTableBytes: 4096, maxListBytes: 65_536 });
  private output = Buffer.allocUnsafeSlow(OUTPUT_BYTES);
  private written = 0;
  private flushed = 0;
  private rest: Buffer | undefined;
  private nextStream = 1;
  private sendWindow = 65_535;
  private received = 0;
  private maxStreams = 100;
  private isReady = false;
  private onReady: (() => void) | undefined;
  private readonly streams = new Uint32Array(MAX_CALLS);
  private readonly starts = new Float64Array(MAX_CALLS);
  private readonly codes = new Uint8Array(MAX_CALLS);
  private readonly endTemplateOf: ((tokenLength: number) => CallTemplate) | undefined;
  private readonly endTemplates = new Map<number, CallTemplate>();
  /** Hold tokens of answers. */
  private readonly tokens: Uint8Array[] = [];
  private endsNext = false;
  /** Number of calls without a complete answer. */
  inFlight = 0;

  /** `endTemplateOf` creates calls that end requests; undefined if no calls end requests. */
  constructor(
    socket: Duplex,
    template: CallTemplate,
    observer: CallObserver,
    endTemplateOf?: (tokenLength: number) => CallTemplate,
  ) {
    this.endTemplateOf = endTemplateOf;
    this.socket = socket;
    this.template = template;
    this.observer = observer;
    socket.on('data', (bytes: Buffer) => this.read(bytes));
    socket.on('error', (error) => observer.failed(error.message));
    socket.on('end', () => observer.failed('the server ended the connection'));
    socket.write(CLIENT_PREFACE);
    this.writeFrame(FRAME_TYPE.SETTINGS, 0, 0, 0);
    this.writeFrame(FRAME_TYPE.WINDOW_UPDATE, 0, 0, 4);
    this.written = this.output.writeUInt32BE(RECEIVE_WINDOW, this.written);
    this.flush();
  }

  /** Resolves when the server has sent its SETTINGS. */
  ready(): Promise<void> {
    return new Promise((resolve) => {
      if (this.isReady) resolve();
      else this.onReady = resolve;
    });
  }

  /** Returns whether another call can be sent now. */
  canCall(): boolean {
    const slot = (this.nextStream >>> 1) & (MAX_CALLS - 1);
    return (
      this.sendWindow >= Math.max(this.template.dataBytes, MAX_END_BYTES) &&
      this.inFlight < this.maxStreams &&
      this.streams[slot] === 0
    );
  }

  /**
   * Adds a call to the output, which {@link flush} sends: the start of a request, or the end of an earlier one in each
   * second call, if there is one.
   */
  call(tenant: number, startMicros: number): void {
    const streamId = this.nextStream;
    this.nextStream += 2;
    const slot = (streamId >>> 1) & (MAX_CALLS - 1);
    this.streams[slot] = streamId;
    this.starts[slot] = startMicros;
    this.codes[slot] = 0;
    this.inFlight++;
    const token = this.endsNext ? this.tokens.shift() : undefined;
    this.endsNext = !this.endsNext;
    const template = token === undefined ? this.template : this.endTemplate(token.length);
    this.sendWindow -= template.dataBytes;
    this.reserve(template.first.length);
    this.written = writeCall(this.output, this.written, template, streamId, tenant, token);
  }

  private endTemplate(tokenLength: number): CallTemplate {
    let template = this.endTemplates.get(tokenLength);
    if (template === undefined) {
      template = this.endTemplateOf?.(tokenLength) ?? this.template;
      this.endTemplates.set(tokenLength, template);
    }
    return template;
  }

  /** Remembers the hold token of an answer. */
  private readToken(bytes: Buffer, start: number, end: number): void {
    const at = bytes.indexOf(TOKEN_PREFIX, start) + TOKEN_PREFIX.length;
    if (at < TOKEN_PREFIX.length || at >= end) return;
    // The length of the value is a varint of one or two bytes; then follow the tag and the length of the token.
    const tag = (bytes[at] as number) < 0x80 ? at + 1 : at + 2;
    const low = bytes[tag + 1] as number;
    const from = low < 0x80 ? tag + 2 : tag + 3;
    const length = low < 0x80 ? low : (low & 0x7f) | ((bytes[tag + 2] as number) << 7);
    this.tokens.push(Uint8Array.prototype.slice.call(bytes, from, from + length));
  }

  flush(): void {
    if (this.written === this.flushed || this.socket.destroyed) return;
    this.socket.write(this.output.subarray(this.flushed, this.written));
    this.flushed = this.written;
  }

  destroy(): void {
    this.socket.removeAllListeners('end');
    this.socket.destroy();
  }

  /** Makes space for `bytes` in a new buffer if necessary, because the socket may still use the old buffer. */
  private reserve(bytes: number): void {
    if (this.written + bytes <= this.output.length) return;
    this.flush();
    this.output = Buffer.allocUnsafeSlow(OUTPUT_BYTES);
    this.written = 0;
    this.flushed = 0;
  }

  private writeFrame(type: number, flags: number, streamId: number, length: number): void {
    this.reserve(FRAME_HEADER_BYTES + length);
    const at = this.written;
    this.output.writeUIntBE(length, at, 3);
    this.output[at + 3] = type;
    this.output[at + 4] = flags;
    this.written = this.output.writeUInt32BE(streamId, at + 5);
  }

  private read(chunk: Buffer): void {
    const bytes = this.rest === undefined ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    while (at + FRAME_HEADER_BYTES <= bytes.length) {
      const end = at + FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      this.frame(
        bytes,
        bytes[at + 3] as number,
        bytes[at + 4] as number,
        readUint31(bytes, at + 5),
        at + FRAME_HEADER_BYTES,
        end,
      );
      at = end;
    }
    this.rest = at === bytes.length ? undefined : bytes.subarray(at);
    if (this.isReady) this.observer.chunkRead(this);
    this.flush();
  }

  private frame(
    bytes: Buffer,
    type: number,
    flags: number,
    streamId: number,
    start: number,
    end: number,
  ): void {
    switch (type) {
      case FRAME_TYPE.DATA:
        this.readData(bytes, flags, streamId, start, end);
        break;
      case FRAME_TYPE.HEADERS:
        this.readHeaders(bytes, flags, streamId, start, end);
        break;
      case FRAME_TYPE.SETTINGS:
        if ((flags & FLAG.ACK) === 0) this.readSettings(bytes, start, end);
        break;
      case FRAME_TYPE.WINDOW_UPDATE:
        if (streamId === 0) this.sendWindow += readUint31(bytes, start);
        break;
      case FRAME_TYPE.PING:
        if ((flags & FLAG.ACK) !== 0) break;
        this.writeFrame(FRAME_TYPE.PING, FLAG.ACK, 0, 8);
        this.written += bytes.copy(this.output, this.written, start, end);
        break;
      case FRAME_TYPE.RST_STREAM:
        this.observer.failed(`a call was reset, code ${bytes.readUInt32BE(start)}`);
        break;
      case FRAME_TYPE.GOAWAY:
        this.observer.failed(`GOAWAY, code ${bytes.readUInt32BE(start + 4)}`);
        break;
      case FRAME_TYPE.CONTINUATION:
        this.observer.failed('this client does not support CONTINUATION');
    }
  }

  /** RFC 9113 section 6.5.2. */
  private readSettings(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; at += 6) {
      const value = bytes.readUInt32BE(at + 2);
      const name = bytes.readUInt16BE(at);
      if (name === 1 && value < 4096)
        this.observer.failed('this client does not support a smaller header table');
      if (name === 3) this.maxStreams = Math.min(value, MAX_CALLS);
      if (name === 4 && value < this.template.dataBytes)
        this.observer.failed('the window of the server is too small for a call');
    }
    this.writeFrame(FRAME_TYPE.SETTINGS, FLAG.ACK, 0, 0);
    this.isReady = true;
    this.onReady?.();
  }

  private readData(bytes: Buffer, flags: number, streamId: number, start: number, end: number): void {
    this.received += end - start;
    if (this.received > RECEIVE_WINDOW / 2) {
      this.writeFrame(FRAME_TYPE.WINDOW_UPDATE, 0, 0, 4);
      this.written = this.output.writeUInt32BE(this.received, this.written);
      this.received = 0;
    }
    if (end === start) return;
    const slot = (streamId >>> 1) & (MAX_CALLS - 1);
    if (
      (flags & FLAG.PADDED) !== 0 ||
      bytes[start + 5] !== OVERALL_CODE_TAG ||
      this.streams[slot] !== streamId
    ) {
      this.observer.failed(`not an answer: ${bytes.toString('hex', start, end)}`);
      return;
    }
    this.codes[slot] = bytes[start + 6] as number;
    if (this.endTemplateOf !== undefined) this.readToken(bytes, start, end);
  }

  private readHeaders(bytes: Buffer, flags: number, streamId: number, start: number, end: number): void {
    if ((flags & (FLAG.PADDED | FLAG.PRIORITY)) !== 0 || (flags & FLAG.END_HEADERS) === 0) {
      this.observer.failed('this client does not support padding, priority and CONTINUATION');
      return;
    }
    const list = this.decoder.decode(bytes, start, end);
    if (list === undefined) {
      this.observer.failed(this.decoder.failure);
      return;
    }
    if ((flags & FLAG.END_STREAM) === 0) return;
    const slot = (streamId >>> 1) & (MAX_CALLS - 1);
    const status = list.fields.indexOf('grpc-status');
    const code = this.codes[slot] as number;
    if (list.fields[status + 1] !== '0' || code === 0 || this.streams[slot] !== streamId) {
      this.observer.failed(`a call got no decision: ${list.fields.join(' ')}`);
      return;
    }
    this.streams[slot] = 0;
    this.inFlight--;
    this.observer.answered(this.starts[slot] as number, code === OVER_LIMIT);
  }
}
