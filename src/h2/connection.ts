import { Budget } from './budget.js';
import type { ByteSink } from './byte-sink.js';
import type { ConnectionEvents, OwnedConnection } from './connection-owner.js';
import { ERROR_CODE } from './error-code.js';
import { ConnectionFailure, type Failure, StreamFailure } from './failure.js';
import { MAX_WINDOW_BYTES } from './flow-window.js';
import { FLAG, FRAME_TYPE } from './frame/frame-type.js';
import { headersPrefixLength, paddingLength, readUint31, readUint32 } from './frame/payload.js';
import { PeerSettings } from './frame/settings.js';
import { writeGoaway, writePing, writeServerPreface, writeSettingsAck } from './frame/write-frame.js';
import { type FrameConsumer, FrameReader } from './frame-reader.js';
import { HEADER_BLOCK_TOO_LONG, HeaderBlock } from './header-block.js';
import { HpackDecoder } from './hpack/decoder.js';
import type { H2Limits } from './limits.js';
import { OutputBuffer } from './output-buffer.js';
import { HTTP1_ANSWER, PrefaceReader } from './preface.js';
import type { RequestHandler } from './request-handler.js';
import { Streams, type StreamsHost } from './streams.js';

const { PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM } = ERROR_CODE;

const NO_SETTINGS = new ConnectionFailure(PROTOCOL_ERROR, "the peer's first frame is not SETTINGS");
const BROKEN_BLOCK = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent another frame inside a header block',
);
const LONE_CONTINUATION = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent CONTINUATION without a header block',
);
const PUSH = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent PUSH_PROMISE, which only servers may');
const STREAM_0 = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a frame of a stream on the connection');
const NOT_STREAM_0 = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent a frame of the connection on a stream',
);
const EVEN_STREAM = new ConnectionFailure(PROTOCOL_ERROR, 'the peer opened a stream with an even identifier');
const IDLE_STREAM = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent a frame on a stream it never opened',
);
const PADDING = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a frame with more padding than payload');
const FRAME_SIZE = new ConnectionFailure(FRAME_SIZE_ERROR, 'the peer sent a frame of a wrong length');
const ZERO_INCREMENT = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a WINDOW_UPDATE of 0');
const TOO_MANY_CONTROL_FRAMES = new ConnectionFailure(
  ENHANCE_YOUR_CALM,
  'the peer sends too many frames that bring no request',
);
const PRIORITY_SIZE = new StreamFailure(FRAME_SIZE_ERROR, 'the peer sent PRIORITY of a wrong length');
const SELF_DEPENDENT = new StreamFailure(PROTOCOL_ERROR, 'the peer made a stream depend on itself');
const ZERO_STREAM_INCREMENT = new StreamFailure(PROTOCOL_ERROR, 'the peer sent a WINDOW_UPDATE of 0');

/** Payloads of our PINGs: keep-alive, and the one that tells when the first GOAWAY was read. */
const KEEP_ALIVE_PING = Buffer.from('weirping', 'latin1');
const GOAWAY_PING = Buffer.from('weirlast', 'latin1');

/** Control frames that a complete request, and a DATA frame of ours, earn the peer; see H2Limits.controlBurst. */
const CONTROL_PER_REQUEST = 4;
const CONTROL_PER_DATA = 2;

/** What the next frame may be. */
type Expected = 'settings' | 'any' | 'continuation';

/** The server's side of one HTTP/2 connection (RFC 9113), without its socket. */
export class H2Connection implements OwnedConnection, StreamsHost, FrameConsumer {
  readonly peer: string;
  lastReceivedMs: number;
  private readonly sink: ByteSink;
  private readonly events: ConnectionEvents;
  private readonly limits: H2Limits;
  private readonly nowMs: () => number;
  private readonly output = new OutputBuffer();
  private readonly reader: FrameReader;
  private readonly decoder: HpackDecoder;
  private readonly streams: Streams;
  private readonly block: HeaderBlock;
  private readonly peerSettings = new PeerSettings();
  private readonly control: Budget;
  /** Control frames earned that were given back already. */
  private controlEarned = 0;
  private preface: PrefaceReader | undefined = new PrefaceReader();
  private expected: Expected = 'settings';
  /** Inside {@link receive}: output leaves at its end. */
  private receiving = false;
  /** The owner knows that output waits. */
  private announced = false;
  private writable = true;
  /** Nothing is read or written any more. */
  private ended = false;
  private closing: 'no' | 'announced' | 'closed' = 'no';
  /** Keep-alive PINGs without their answer. */
  private pingsUnanswered = 0;

  /**
   * `options`: `peer` names the peer in logs, `nowMs` is a clock in milliseconds that never goes back.
   */
  constructor(
    sink: ByteSink,
    handler: RequestHandler,
    events: ConnectionEvents,
    options: { readonly peer: string; readonly limits: H2Limits; readonly nowMs: () => number },
  ) {
    const { peer, limits, nowMs } = options;
    const now = nowMs();
    this.peer = peer;
    this.lastReceivedMs = now;
    this.sink = sink;
    this.events = events;
    this.limits = limits;
    this.nowMs = nowMs;
    this.reader = new FrameReader(this, limits.maxFrameBytes);
    this.decoder = new HpackDecoder({
      maxTableBytes: limits.headerTableBytes,
      maxListBytes: limits.maxHeaderListBytes,
    });
    this.streams = new Streams(this, handler, this.output, limits, now);
    this.block = new HeaderBlock(limits);
    this.control = new Budget(limits.controlBurst, limits.controlRefillPerSecond, now);
  }

  get openStreams(): number {
    return this.streams.size;
  }

  get unconsumedBytes(): number {
    return this.streams.window.unconsumed;
  }

  get congested(): boolean {
    return !this.writable;
  }

  start(): void {
    this.lastReceivedMs = this.nowMs();
  }

  receive(chunk: Buffer): void {
    if (this.ended) return;
    this.lastReceivedMs = this.nowMs();
    this.receiving = true;
    if (this.preface === undefined) this.reader.read(chunk, 0);
    else this.receivePreface(this.preface, chunk);
    this.receiving = false;
    this.flush();
  }

  flush(): void {
    if (this.ended) return;
    this.announced = false;
    const pending = this.output.take();
    if (pending !== undefined) this.writable = this.sink.write(pending);
    if (this.sink.bufferedBytes + this.streams.sender.queuedBytes > this.limits.maxOutputBytes) {
      // A GOAWAY would wait behind what the peer does not read.
      this.ended = true;
      this.sink.destroy();
      this.breakOff(ENHANCE_YOUR_CALM, 'the peer does not read its answers');
    } else if (this.closing === 'closed' && this.streams.size === 0) {
      this.finish();
    }
  }

  onWritable(): void {
    this.writable = true;
  }

  ping(): void {
    if (this.ended || this.expected === 'settings') return;
    this.pingsUnanswered++;
    writePing(this.output, false, KEEP_ALIVE_PING, 0);
    this.onOutputAdded();
  }

  closeGracefully(): void {
    if (this.ended || this.closing !== 'no') return;
    if (this.expected === 'settings') {
      // The peer has not begun: it has no request to lose.
      this.finish();
      return;
    }
    this.closing = 'announced';
    writeGoaway(this.output, MAX_WINDOW_BYTES, ERROR_CODE.NO_ERROR, '');
    writePing(this.output, false, GOAWAY_PING, 0);
    this.onOutputAdded();
  }

  terminate(errorCode: number, debug: string): void {
    if (this.ended) return;
    this.sendLast(errorCode, debug);
    this.streams.resetAll(errorCode);
  }

  lost(): void {
    if (this.ended) return;
    this.ended = true;
    this.reader.stop();
    this.streams.resetAll(ERROR_CODE.CANCEL);
    this.output.clear();
  }

  /** For {@link Streams}. */
  onOutputAdded(): void {
    if (this.receiving || this.announced || this.ended) return;
    this.announced = true;
    this.events.onOutput(this);
  }

  /** For {@link FrameReader}. */
  onOversizedFrame(_length: number): void {
    this.fail(FRAME_SIZE);
  }

  /** For {@link FrameReader}. */
  onFrame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
    const failure = this.takeFrame(type, flags, id, bytes, start, end);
    if (failure === undefined) return !this.ended;
    const fatal = failure instanceof StreamFailure ? this.streams.fail(id, failure) : failure;
    if (fatal === undefined) return !this.ended;
    this.fail(fatal);
    return false;
  }

  private receivePreface(preface: PrefaceReader, chunk: Buffer): void {
    switch (preface.read(chunk)) {
      case 'http2':
        this.preface = undefined;
        writeServerPreface(this.output, this.limits);
        this.reader.read(chunk, preface.used);
        return;
      case 'http1':
        this.sink.write(HTTP1_ANSWER);
        this.finish();
        this.events.onBroken(this, 'the peer sent an HTTP/1 request', false);
        return;
      case 'garbage':
        // Section 3.4: GOAWAY may be left out, as the peer is not using HTTP/2.
        this.finish();
        this.events.onBroken(this, 'the peer did not send the preface of HTTP/2', false);
        return;
      case 'more':
    }
  }

  private takeFrame(
    type: number,
    flags: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): Failure {
    if (this.expected !== 'any') {
      const problem = this.checkExpected(type, flags, id);
      if (problem !== undefined) return problem;
    }
    switch (type) {
      case FRAME_TYPE.DATA:
        return this.onData(flags, id, bytes, start, end);
      case FRAME_TYPE.HEADERS:
        return this.onHeaders(flags, id, bytes, start, end);
      case FRAME_TYPE.CONTINUATION:
        return this.onContinuation(flags, bytes, start, end);
      case FRAME_TYPE.PUSH_PROMISE:
        return PUSH;
      default:
        return this.chargeControl() ?? this.onControlFrame(type, flags, id, bytes, start, end);
    }
  }

  private checkExpected(type: number, flags: number, id: number): Failure {
    if (this.expected === 'settings') {
      return type === FRAME_TYPE.SETTINGS && (flags & FLAG.ACK) === 0 ? undefined : NO_SETTINGS;
    }
    // Section 6.10: "any other frame or a frame on a different stream" inside a header block.
    return type === FRAME_TYPE.CONTINUATION && id === this.block.streamId ? undefined : BROKEN_BLOCK;
  }

  private onData(flags: number, id: number, bytes: Buffer, start: number, end: number): Failure {
    if (id === 0) return STREAM_0;
    let bodyStart = start;
    let bodyEnd = end;
    if ((flags & FLAG.PADDED) !== 0) {
      const padding = paddingLength(bytes, start, end);
      if (padding < 0) return PADDING;
      bodyStart++;
      bodyEnd -= padding;
    }
    const endStream = (flags & FLAG.END_STREAM) !== 0;
    if (bodyStart === bodyEnd && !endStream) {
      const problem = this.chargeControl();
      if (problem !== undefined) return problem;
    }
    return this.streams.onData(id, end - start, bytes, bodyStart, bodyEnd, endStream);
  }

  private onHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): Failure {
    if (id === 0) return STREAM_0;
    if ((id & 1) === 0) return EVEN_STREAM;
    const endStream = (flags & FLAG.END_STREAM) !== 0;
    let blockStart = start;
    let blockEnd = end;
    let selfDependent = false;
    if ((flags & (FLAG.PADDED | FLAG.PRIORITY)) !== 0) {
      blockStart += headersPrefixLength(flags);
      if (blockStart > end) return FRAME_SIZE;
      if ((flags & FLAG.PADDED) !== 0) blockEnd -= bytes[start] as number;
      if (blockStart > blockEnd) return PADDING;
      if ((flags & FLAG.PRIORITY) !== 0) selfDependent = readUint31(bytes, blockStart - 5) === id;
    }
    if ((flags & FLAG.END_HEADERS) !== 0) {
      return this.onHeaderBlock(id, bytes, blockStart, blockEnd, endStream, selfDependent);
    }
    this.expected = 'continuation';
    this.block.begin(id, endStream, selfDependent);
    return this.block.append(bytes, blockStart, blockEnd);
  }

  private onContinuation(flags: number, bytes: Buffer, start: number, end: number): Failure {
    if (this.expected !== 'continuation') return LONE_CONTINUATION;
    const { block } = this;
    const problem = block.countContinuation() ?? block.append(bytes, start, end);
    if (problem !== undefined || (flags & FLAG.END_HEADERS) === 0) return problem;
    this.expected = 'any';
    const complete = block.bytes;
    const length = block.length;
    block.release();
    return this.onHeaderBlock(block.streamId, complete, 0, length, block.endStream, block.selfDependent);
  }

  private onHeaderBlock(
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
    selfDependent: boolean,
  ): Failure {
    if (end - start > this.limits.maxHeaderBlockBytes) return HEADER_BLOCK_TOO_LONG;
    // Every block is decoded, wanted or not, or the tables of both sides would differ from then on (section 4.3).
    const list = this.decoder.decode(bytes, start, end);
    if (list === undefined) return new ConnectionFailure(COMPRESSION_ERROR, this.decoder.failure);
    return this.streams.onHeaders(id, list, endStream, selfDependent);
  }

  private onControlFrame(
    type: number,
    flags: number,
    id: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): Failure {
    switch (type) {
      case FRAME_TYPE.PRIORITY:
        if (id === 0) return STREAM_0;
        if (end - start !== 5) return PRIORITY_SIZE;
        return readUint31(bytes, start) === id ? SELF_DEPENDENT : undefined;
      case FRAME_TYPE.RST_STREAM:
        if (id === 0) return STREAM_0;
        if (end - start !== 4) return FRAME_SIZE;
        if (this.streams.isIdle(id)) return IDLE_STREAM;
        return this.streams.onRstStream(id, readUint32(bytes, start));
      case FRAME_TYPE.WINDOW_UPDATE:
        return this.onWindowUpdate(id, bytes, start, end);
      case FRAME_TYPE.SETTINGS:
        return id === 0 ? this.onSettings(flags, bytes, start, end) : NOT_STREAM_0;
      case FRAME_TYPE.PING:
        return id === 0 ? this.onPing(flags, bytes, start, end) : NOT_STREAM_0;
      case FRAME_TYPE.GOAWAY:
        if (id !== 0) return NOT_STREAM_0;
        // The peer ends the connection itself once it has its answers.
        return end - start < 8 ? FRAME_SIZE : undefined;
      default:
        // Section 4.1: "Implementations MUST ignore and discard frames of unknown types."
        return undefined;
    }
  }

  private onWindowUpdate(id: number, bytes: Buffer, start: number, end: number): Failure {
    if (end - start !== 4) return FRAME_SIZE;
    const increment = readUint31(bytes, start);
    if (id === 0) {
      return increment === 0 ? ZERO_INCREMENT : this.streams.onConnectionWindow(increment);
    }
    if (this.streams.isIdle(id)) return IDLE_STREAM;
    return increment === 0 ? ZERO_STREAM_INCREMENT : this.streams.onStreamWindow(id, increment);
  }

  private onSettings(flags: number, bytes: Buffer, start: number, end: number): Failure {
    if ((flags & FLAG.ACK) !== 0) {
      if (end !== start) return FRAME_SIZE;
      this.streams.onSettingsAck();
      return undefined;
    }
    const { peerSettings, streams } = this;
    const problem = peerSettings.read(bytes, start, end);
    if (problem !== undefined) return problem;
    streams.sender.maxFrameBytes = peerSettings.maxFrameBytes;
    streams.sender.encoder.setPeerTableBytes(peerSettings.headerTableBytes);
    // The acknowledgement goes first: what follows it obeys the new values (section 6.5.3).
    writeSettingsAck(this.output);
    const overflow = streams.setSendWindow(peerSettings.initialWindowBytes);
    if (overflow !== undefined) return overflow;
    if (this.expected === 'settings') {
      this.expected = 'any';
      this.events.onGreeted(this);
    }
    return undefined;
  }

  private onPing(flags: number, bytes: Buffer, start: number, end: number): Failure {
    if (end - start !== 8) return FRAME_SIZE;
    if ((flags & FLAG.ACK) === 0) {
      writePing(this.output, true, bytes, start);
    } else if (GOAWAY_PING.compare(bytes, start, end) === 0) {
      if (this.closing !== 'announced') return undefined;
      this.closing = 'closed';
      this.streams.closeToNew();
      writeGoaway(this.output, this.streams.lastServedId, ERROR_CODE.NO_ERROR, '');
    } else if (this.pingsUnanswered > 0 && KEEP_ALIVE_PING.compare(bytes, start, end) === 0) {
      this.pingsUnanswered--;
      this.events.onAck(this);
    }
    return undefined;
  }

  /** Counts a frame that brings no request. */
  private chargeControl(): ConnectionFailure | undefined {
    const { streams } = this;
    const earned =
      CONTROL_PER_REQUEST * streams.requestsCompleted + CONTROL_PER_DATA * streams.sender.dataFrames;
    if (earned > this.controlEarned) {
      this.control.giveBack(earned - this.controlEarned);
      this.controlEarned = earned;
    }
    return this.control.take(this.lastReceivedMs) ? undefined : TOO_MANY_CONTROL_FRAMES;
  }

  /** The peer broke the protocol or a limit. */
  private fail(failure: ConnectionFailure): void {
    if (this.ended) return;
    this.sendLast(failure.code, failure.text);
    this.breakOff(failure.code, failure.text);
  }

  private breakOff(code: number, text: string): void {
    const greeted = this.expected !== 'settings';
    this.reader.stop();
    this.streams.resetAll(code);
    this.events.onBroken(this, text, greeted);
  }

  /** GOAWAY, everything that was written before it, and the end. */
  private sendLast(errorCode: number, debug: string): void {
    if (this.preface === undefined) writeGoaway(this.output, this.streams.lastServedId, errorCode, debug);
    const pending = this.output.take();
    if (pending !== undefined) this.sink.write(pending);
    this.finish();
  }

  private finish(): void {
    this.ended = true;
    this.reader.stop();
    this.sink.end();
  }
}
