import { checkInvariant } from '../runtime/invariant.js';
import { ControlBudget } from './control-budget.js';
import { ConnectionFailure, ERROR_CODE, type Failure, StreamFailure } from './failure.js';
import { type FrameConsumer, FrameReader, HTTP1_ANSWER, PrefaceReader, ReadQuantum } from './frame-reader.js';
import {
  FLAG,
  FRAME_TYPE,
  MAX_WINDOW_BYTES,
  OutputBuffer,
  PeerSettings,
  readUint31,
  readUint32,
  writeGoaway,
  writePing,
  writeServerPreface,
  writeSettingsAck,
} from './frames.js';
import type { H2Limits } from './limits.js';
import { RequestFrames } from './request-frames.js';
import type { RequestHandler } from './request-handler.js';
import { Streams, type StreamsHost } from './streams/streams.js';

const { PROTOCOL_ERROR, FRAME_SIZE_ERROR, ENHANCE_YOUR_CALM } = ERROR_CODE;

const NO_SETTINGS = new ConnectionFailure(PROTOCOL_ERROR, "the peer's first frame is not SETTINGS");
const BROKEN_BLOCK = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent another frame inside a header block',
);
const PUSH = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent PUSH_PROMISE, which only servers may send');
const STREAM_0 = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a stream frame on stream 0');
const NOT_STREAM_0 = new ConnectionFailure(PROTOCOL_ERROR, 'the peer sent a connection frame on a stream');
const IDLE_STREAM = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent a frame on a stream that it never opened',
);
const FRAME_SIZE = new ConnectionFailure(FRAME_SIZE_ERROR, 'the peer sent a frame with an invalid length');
const ZERO_INCREMENT = new ConnectionFailure(
  PROTOCOL_ERROR,
  'the peer sent a WINDOW_UPDATE with an increment of 0',
);
const PRIORITY_SIZE = new StreamFailure(
  FRAME_SIZE_ERROR,
  'the peer sent a PRIORITY frame with an invalid length',
);
const SELF_DEPENDENT = new StreamFailure(PROTOCOL_ERROR, 'the peer made a stream depend on itself');
const ZERO_STREAM_INCREMENT = new StreamFailure(
  PROTOCOL_ERROR,
  'the peer sent a WINDOW_UPDATE with an increment of 0',
);

/** Payloads of our PING frames: for keep-alive, and to detect that the peer has read the first GOAWAY. */
const KEEP_ALIVE_PING = Buffer.from('weirping', 'latin1');
const GOAWAY_PING = Buffer.from('weirlast', 'latin1');

/** Events that a connection reports to its owner. */
export interface ConnectionEvents {
  /**
   * Output waits for {@link H2Connection.flush}. Called once until the next flush. Called from within methods of
   * streams, so schedule the flush instead of calling it here.
   */
  onOutput(connection: H2Connection): void;
  /** The peer has sent the HTTP/2 preface and SETTINGS. */
  onEstablished(connection: H2Connection): void;
  /** The peer has acknowledged a PING of {@link H2Connection.ping}. */
  onPingAck(connection: H2Connection): void;
  /**
   * The connection closes itself because the peer violated the protocol or a limit. `error` is text for the log.
   * `established` is false if the peer never sent SETTINGS.
   */
  onProtocolError(connection: H2Connection, error: string, established: boolean): void;
}

/** The destination of a connection's output: a socket in production, an array in tests. */
export interface ByteSink {
  /**
   * Takes ownership of `bytes`: the connection does not change them again. If the peer does not read fast enough, the
   * sink buffers the bytes and `bufferedBytes` counts them.
   */
  write(bytes: Buffer): void;
  /** Bytes that are written but not yet passed to the operating system. */
  readonly bufferedBytes: number;
  /** Closes the connection after all written bytes are sent. */
  end(): void;
  /** Closes the connection immediately. */
  destroy(): void;
}

/**
 * The server side of one HTTP/2 connection (RFC 9113), without its socket. Our SETTINGS are sent only after the peer's
 * preface, so that an HTTP/1 client gets a readable answer. Every HTTP/2 client sends its preface without waiting
 * (section 3.4).
 */
export class H2Connection implements StreamsHost, FrameConsumer {
  readonly peer: string;
  /** Time of the last received bytes, in milliseconds on the owner's clock. */
  lastReceivedMs: number;
  readonly #sink: ByteSink;
  readonly #events: ConnectionEvents;
  readonly #limits: H2Limits;
  readonly #nowMs: () => number;
  readonly #output = new OutputBuffer();
  readonly #reader: FrameReader;
  readonly #streams: Streams;
  readonly #requests: RequestFrames;
  readonly #peerSettings = new PeerSettings();
  readonly #control: ControlBudget;
  readonly readQuantum: ReadQuantum;
  /** Bytes that the handler holds for this connection. */
  #handlerBytes = 0;
  #preface: PrefaceReader | undefined = new PrefaceReader();
  /** Whether the peer's first SETTINGS frame was received. */
  #established = false;
  /** True during {@link receive}, which sends the output at its end. */
  #receiving = false;
  /** Whether {@link ConnectionEvents.onOutput} was called since the last flush. */
  #announced = false;
  /** True once the connection neither reads nor writes. */
  #ended = false;
  #closing: 'no' | 'announced' | 'closed' = 'no';
  /** Number of keep-alive PINGs without an acknowledgement. */
  #pingsUnanswered = 0;

  /**
   * `peer` names the peer in logs. `nowMs` is a clock in milliseconds that never goes back. `readQuantum` limits the
   * work of one {@link receive}; if absent, the work is not limited.
   */
  constructor(
    sink: ByteSink,
    handler: RequestHandler,
    events: ConnectionEvents,
    options: {
      readonly peer: string;
      readonly limits: H2Limits;
      readonly nowMs: () => number;
      readonly readQuantum?: ReadQuantum | undefined;
    },
  ) {
    const { peer, limits, nowMs } = options;
    const now = nowMs();
    this.peer = peer;
    this.lastReceivedMs = now;
    this.#sink = sink;
    this.#events = events;
    this.#limits = limits;
    this.#nowMs = nowMs;
    this.readQuantum = options.readQuantum ?? new ReadQuantum(nowMs);
    this.#reader = new FrameReader(this, limits.maxFrameBytes, this.readQuantum);
    this.#control = new ControlBudget(limits, now);
    this.#streams = new Streams(this, handler, this.#output, limits, this.#control);
    this.#requests = new RequestFrames(this.#streams, limits);
  }

  /** Streams that are open or half-closed. */
  get openStreams(): number {
    return this.#streams.size;
  }

  get unconsumedBytes(): number {
    return this.#streams.window.unconsumed;
  }

  /**
   * Memory held for the peer, in bytes: incomplete frames, header blocks and messages, streams, what the handler holds
   * (ServerConnection.addHeldBytes), and responses that wait for flow control windows. Bytes that the sink buffers are
   * not included.
   */
  get heldBytes(): number {
    const reader = this.#reader;
    const requests = this.#requests;
    const streams = this.#streams;
    const output = this.#output;
    return reader.heldBytes + requests.heldBytes + streams.heldBytes + output.length + this.#handlerBytes;
  }

  /** Frees buffers that are only kept for reuse. Call it from time to time. */
  trim(): void {
    this.#reader.trim();
    this.#output.trim();
  }

  addHeldBytes(bytes: number): void {
    this.#handlerBytes += bytes;
    checkInvariant(this.#handlerBytes >= 0, 'a handler releases no more memory than it holds');
    // The owner measures the held memory again when it flushes.
    this.onOutputAdded();
  }

  /**
   * Processes bytes from the peer, `chunk[from, chunk.length)`. Chunks may end anywhere. The bytes are processed or
   * copied before this method returns, and the responses are sent in one write at its end. Returns the offset at which
   * processing stopped because the read quantum is used up; call again with the rest. Returns `chunk.length` if all
   * bytes are processed.
   */
  receive(chunk: Buffer, from = 0): number {
    if (this.#ended) return chunk.length;
    this.lastReceivedMs = this.#nowMs();
    this.#receiving = true;
    const end =
      this.#preface === undefined
        ? this.#reader.read(chunk, from)
        : this.#receivePreface(this.#preface, chunk, from);
    this.#receiving = false;
    this.#writeOut();
    return this.#ended ? chunk.length : end;
  }

  /**
   * Passes all pending output to the sink. Output that is produced outside of {@link receive} is announced by
   * {@link ConnectionEvents.onOutput}.
   */
  flush(): void {
    this.#announced = false;
    this.#writeOut();
  }

  /** Sends a PING for keep-alive. {@link ConnectionEvents.onPingAck} reports the answer. */
  ping(): void {
    if (this.#ended || !this.#established) return;
    this.#pingsUnanswered++;
    writePing(this.#output, false, KEEP_ALIVE_PING, 0);
    this.onOutputAdded();
  }

  /**
   * Shuts down gracefully (RFC 9113 section 6.8). Sends a GOAWAY with the highest possible stream id and a PING. Once
   * the PING is acknowledged, sends a second GOAWAY with the id of the last stream that is served, and refuses later
   * streams. Closes the sink when no stream is open.
   */
  closeGracefully(): void {
    if (this.#ended || this.#closing !== 'no') return;
    if (!this.#established) {
      // The peer has not sent SETTINGS, so no request can be lost.
      this.#finish();
      return;
    }
    this.#closing = 'announced';
    writeGoaway(this.#output, MAX_WINDOW_BYTES, ERROR_CODE.NO_ERROR, '');
    writePing(this.#output, false, GOAWAY_PING, 0);
    this.onOutputAdded();
  }

  /** Sends GOAWAY with `errorCode` and the text `debug`, and closes the connection even if streams are open. */
  terminate(errorCode: number, debug: string): void {
    if (this.#ended) return;
    this.#sendGoawayAndEnd(errorCode, debug);
    this.#streams.resetAll(errorCode);
  }

  /**
   * Ends the streams after the socket has closed: nothing more is sent, and at most `maxStreams` streams are reset, or
   * all if it is absent. Call it again while {@link openStreams} is above 0.
   */
  resetStreams(maxStreams?: number): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#reader.stop();
      this.#requests.release();
    }
    this.#streams.resetAll(ERROR_CODE.CANCEL, maxStreams);
    this.#output.clear();
  }

  /** Implements {@link StreamsHost}. */
  onOutputAdded(): void {
    if (this.#receiving || this.#announced || this.#ended) return;
    this.#announced = true;
    this.#events.onOutput(this);
  }

  /** Implements {@link FrameConsumer}. */
  onOversizedFrame(_length: number): void {
    this.#fail(FRAME_SIZE);
  }

  /** Implements {@link FrameConsumer}. */
  onFrame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): boolean {
    const failure = this.#handleFrame(type, flags, id, bytes, start, end);
    if (failure === undefined) return !this.#ended;
    const fatal = failure instanceof StreamFailure ? this.#streams.fail(id, failure) : failure;
    if (fatal === undefined) return !this.#ended;
    this.#fail(fatal);
    return false;
  }

  #writeOut(): void {
    if (this.#ended) return;
    const pending = this.#output.take();
    if (pending !== undefined) this.#sink.write(pending);
    if (this.#sink.bufferedBytes + this.#streams.sender.queuedBytes > this.#limits.maxOutputBytes) {
      // A GOAWAY would be queued behind the data that the peer does not read.
      this.#ended = true;
      this.#sink.destroy();
      this.#abort(ENHANCE_YOUR_CALM, 'the peer does not read the responses');
    } else if (this.#closing === 'closed' && this.#streams.size === 0) {
      this.#finish();
    }
  }

  #receivePreface(preface: PrefaceReader, chunk: Buffer, from: number): number {
    switch (preface.read(from === 0 ? chunk : chunk.subarray(from))) {
      case 'http2':
        this.#preface = undefined;
        writeServerPreface(this.#output, this.#limits);
        return this.#reader.read(chunk, from + preface.used);
      case 'http1':
        this.#sink.write(HTTP1_ANSWER);
        this.#finish();
        this.#events.onProtocolError(this, 'the peer sent an HTTP/1 request', false);
        return chunk.length;
      case 'garbage':
        // RFC 9113 section 3.4: a GOAWAY may be omitted, because the peer does not use HTTP/2.
        this.#finish();
        this.#events.onProtocolError(this, 'the peer did not send the HTTP/2 connection preface', false);
        return chunk.length;
      case 'more':
        return chunk.length;
    }
  }

  #handleFrame(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): Failure {
    const { readQuantum } = this;
    const requests = this.#requests;
    readQuantum.remaining -= 1 + ((end - start) >> 9);
    // RFC 9113 section 6.10: inside a header block, "any other frame or a frame on a different stream" is an error.
    if (requests.openBlockId !== 0 && (type !== FRAME_TYPE.CONTINUATION || id !== requests.openBlockId)) {
      return BROKEN_BLOCK;
    }
    // RFC 9113 section 3.4: the first frame of the peer must be SETTINGS.
    if (!this.#established && (type !== FRAME_TYPE.SETTINGS || (flags & FLAG.ACK) !== 0)) return NO_SETTINGS;
    switch (type) {
      case FRAME_TYPE.DATA:
        return requests.onData(flags, id, bytes, start, end);
      case FRAME_TYPE.HEADERS:
        return requests.onHeaders(flags, id, bytes, start, end);
      case FRAME_TYPE.CONTINUATION:
        return requests.onContinuation(flags, id, bytes, start, end);
      case FRAME_TYPE.PUSH_PROMISE:
        return PUSH;
      case FRAME_TYPE.RST_STREAM:
        return this.#onRstStream(id, bytes, start, end);
      default:
        return (
          this.#control.charge(this.lastReceivedMs) ??
          this.#onControlFrame(type, flags, id, bytes, start, end)
        );
    }
  }

  #onControlFrame(
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
      case FRAME_TYPE.WINDOW_UPDATE:
        return this.#onWindowUpdate(id, bytes, start, end);
      case FRAME_TYPE.SETTINGS:
        // SETTINGS may change the window of every stream, and each setting is read.
        this.readQuantum.remaining -= (this.#streams.size + end - start) >> 5;
        return id === 0 ? this.#onSettings(flags, bytes, start, end) : NOT_STREAM_0;
      case FRAME_TYPE.PING:
        return id === 0 ? this.#onPing(flags, bytes, start, end) : NOT_STREAM_0;
      case FRAME_TYPE.GOAWAY:
        if (id !== 0) return NOT_STREAM_0;
        // The peer closes the connection itself once it has received its responses.
        return end - start < 8 ? FRAME_SIZE : undefined;
      default:
        // RFC 9113 section 4.1: "Implementations MUST ignore and discard frames of unknown types."
        return undefined;
    }
  }

  #onRstStream(id: number, bytes: Buffer, start: number, end: number): Failure {
    if (id === 0) return STREAM_0;
    if (end - start !== 4) return FRAME_SIZE;
    return this.#streams.isIdle(id) ? IDLE_STREAM : this.#streams.onRstStream(id, readUint32(bytes, start));
  }

  #onWindowUpdate(id: number, bytes: Buffer, start: number, end: number): Failure {
    if (end - start !== 4) return FRAME_SIZE;
    const increment = readUint31(bytes, start);
    if (id === 0) {
      return increment === 0 ? ZERO_INCREMENT : this.#streams.onConnectionWindow(increment);
    }
    if (this.#streams.isIdle(id)) return IDLE_STREAM;
    return increment === 0 ? ZERO_STREAM_INCREMENT : this.#streams.onStreamWindow(id, increment);
  }

  #onSettings(flags: number, bytes: Buffer, start: number, end: number): Failure {
    if ((flags & FLAG.ACK) !== 0) {
      if (end !== start) return FRAME_SIZE;
      this.#streams.onSettingsAck();
      return undefined;
    }
    const peerSettings = this.#peerSettings;
    const streams = this.#streams;
    const problem = peerSettings.read(bytes, start, end);
    if (problem !== undefined) return problem;
    streams.sender.maxFrameBytes = peerSettings.maxFrameBytes;
    streams.sender.encoder.setPeerTableBytes(peerSettings.minHeaderTableBytes);
    streams.sender.encoder.setPeerTableBytes(peerSettings.headerTableBytes);
    // The acknowledgement is sent first, because later frames follow the new values (RFC 9113 section 6.5.3).
    writeSettingsAck(this.#output);
    const overflow = streams.setSendWindow(peerSettings.initialWindowBytes);
    if (overflow !== undefined) return overflow;
    if (!this.#established) {
      this.#established = true;
      this.#events.onEstablished(this);
    }
    return undefined;
  }

  #onPing(flags: number, bytes: Buffer, start: number, end: number): Failure {
    if (end - start !== 8) return FRAME_SIZE;
    if ((flags & FLAG.ACK) === 0) {
      writePing(this.#output, true, bytes, start);
    } else if (GOAWAY_PING.compare(bytes, start, end) === 0) {
      if (this.#closing !== 'announced') return undefined;
      this.#closing = 'closed';
      this.#streams.refuseNewStreams();
      writeGoaway(this.#output, this.#streams.lastServedId, ERROR_CODE.NO_ERROR, '');
    } else if (this.#pingsUnanswered > 0 && KEEP_ALIVE_PING.compare(bytes, start, end) === 0) {
      this.#pingsUnanswered--;
      this.#events.onPingAck(this);
    }
    return undefined;
  }

  /** Closes the connection because the peer violated the protocol or a limit. */
  #fail(failure: ConnectionFailure): void {
    if (this.#ended) return;
    this.#sendGoawayAndEnd(failure.code, failure.text);
    this.#abort(failure.code, failure.text);
  }

  #abort(code: number, text: string): void {
    this.#reader.stop();
    this.#streams.resetAll(code);
    this.#events.onProtocolError(this, text, this.#established);
  }

  /** Sends the pending output and a GOAWAY, and closes the connection. */
  #sendGoawayAndEnd(errorCode: number, debug: string): void {
    if (this.#preface === undefined) writeGoaway(this.#output, this.#streams.lastServedId, errorCode, debug);
    const pending = this.#output.take();
    if (pending !== undefined) this.#sink.write(pending);
    this.#finish();
  }

  #finish(): void {
    checkInvariant(!this.#ended, 'a connection ends only once');
    this.#ended = true;
    this.#reader.stop();
    this.#requests.release();
    this.#sink.end();
  }
}
