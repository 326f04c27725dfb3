import { freeBuffer } from '../runtime/free-buffer.js';
import { CLIENT_PREFACE, FRAME_HEADER_BYTES, readUint31 } from './frames.js';

/** Receives frames from a {@link FrameReader}. */
export interface FrameConsumer {
  /**
   * Handles a complete frame. The payload is `bytes[start, end)` and is valid only during the call. Returns false to
   * stop reading permanently.
   */
  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean;
  /**
   * Reports a frame header with a payload of `length` bytes, which exceeds the limit. Reading has stopped permanently.
   */
  onOversizedFrame(length: number): void;
}

const FIRST_HELD_BYTES = 512;
/**
 * Buffers up to this size are kept for the next incomplete frame until {@link FrameReader.trim}. Allocating a buffer
 * for each chunk would double the cost of a flood.
 */
const MAX_REUSED_BYTES = 2048;
const NOTHING = Buffer.alloc(0);

/**
 * Splits chunks into frames (RFC 9113 section 4.1). A frame that is complete within a chunk is passed on without
 * copying. Only a frame that continues in the next chunk is copied.
 */
export class FrameReader {
  readonly #consumer: FrameConsumer;
  readonly #maxFrameBytes: number;
  readonly #slice: ReadQuantum;
  #held: Buffer = NOTHING;
  #heldLength = 0;
  #stopped = false;

  /** Reading pauses after the frame that uses up `slice`. */
  constructor(consumer: FrameConsumer, maxFrameBytes: number, slice: ReadQuantum) {
    this.#consumer = consumer;
    this.#maxFrameBytes = maxFrameBytes;
    this.#slice = slice;
  }

  /** Memory held for the incomplete frame, in bytes. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** Frees the buffer if it holds no frame, so that idle connections hold no memory. */
  trim(): void {
    if (this.#heldLength === 0) this.#held = NOTHING;
  }

  /** Stops reading permanently and frees the buffer. */
  stop(): void {
    this.#stopped = true;
    freeBuffer(this.#held);
    this.#held = NOTHING;
    this.#heldLength = 0;
  }

  /**
   * Reads `chunk[from, chunk.length)`, or as much of it as the read quantum allows. Returns the offset at which to
   * continue, or `chunk.length` if everything is read.
   */
  read(chunk: Buffer, from: number): number {
    const slice = this.#slice;
    const chunkEnd = chunk.length;
    if (this.#stopped) return chunkEnd;
    let at = from;
    if (this.#heldLength > 0) {
      at = this.#finishHeld(chunk, from);
      if (at < 0) return chunkEnd;
      if (slice.remaining <= 0 && slice.isOver()) return at;
    }
    while (chunkEnd - at >= FRAME_HEADER_BYTES) {
      const length = frameLength(chunk, at);
      if (length > this.#maxFrameBytes) {
        this.#refuse(length);
        return chunkEnd;
      }
      const start = at + FRAME_HEADER_BYTES;
      const end = start + length;
      if (end > chunkEnd) break;
      if (
        !this.#consumer.onFrame(
          chunk[at + 3] as number,
          chunk[at + 4] as number,
          readUint31(chunk, at + 5),
          chunk,
          start,
          end,
        )
      ) {
        this.stop();
        return chunkEnd;
      }
      at = end;
      if (slice.remaining <= 0 && slice.isOver()) return at;
    }
    if (at < chunkEnd && !this.#stopped) this.#hold(chunk, at, chunkEnd);
    return chunkEnd;
  }

  /**
   * Completes the held frame and passes it on. Returns the offset at which the chunk continues, or -1 if the chunk is
   * used up or reading has stopped.
   */
  #finishHeld(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#heldLength < FRAME_HEADER_BYTES) {
      const taken = Math.min(FRAME_HEADER_BYTES - this.#heldLength, chunk.length - at);
      this.#hold(chunk, at, at + taken);
      at += taken;
      if (this.#heldLength < FRAME_HEADER_BYTES) return -1;
    }
    const length = frameLength(this.#held, 0);
    if (length > this.#maxFrameBytes) {
      this.#refuse(length);
      return -1;
    }
    const size = FRAME_HEADER_BYTES + length;
    const taken = Math.min(size - this.#heldLength, chunk.length - at);
    this.#hold(chunk, at, at + taken);
    at += taken;
    if (this.#heldLength < size) return -1;
    const frame = this.#held;
    // The consumer may call `stop`, which frees the held buffer.
    this.#held = NOTHING;
    this.#heldLength = 0;
    const continues = this.#consumer.onFrame(
      frame[3] as number,
      frame[4] as number,
      readUint31(frame, 5),
      frame,
      FRAME_HEADER_BYTES,
      size,
    );
    if (continues && !this.#stopped && frame.length <= MAX_REUSED_BYTES) this.#held = frame;
    else freeBuffer(frame);
    if (continues) return at;
    this.stop();
    return -1;
  }

  /**
   * Buffers `chunk[start, end)`. The buffer grows with the received bytes, not with the announced length, so that a
   * peer cannot cause allocations without sending data.
   */
  #hold(chunk: Buffer, start: number, end: number): void {
    const needed = this.#heldLength + end - start;
    if (needed > this.#held.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_HELD_BYTES, 2 * needed));
      this.#held.copy(larger, 0, 0, this.#heldLength);
      freeBuffer(this.#held);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#heldLength, start, end);
    this.#heldLength = needed;
  }

  #refuse(length: number): void {
    this.stop();
    this.#consumer.onOversizedFrame(length);
  }
}

function frameLength(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
}

/** Amount of work between two checks of the clock: three requests, or a few frames without requests. */
const WORK_PER_CLOCK_CHECK = 64;
/** Maximum number of clock checks in one slice, which corresponds to about five hundred requests. */
const MAX_CLOCK_CHECKS = 256;

/**
 * Work of a complete request, in the unit of {@link ReadQuantum.remaining}. A frame that only has to be parsed counts
 * 1.
 */
export const REQUEST_WORK = 12;
/** Work of a request head whose body follows. */
export const HEAD_WORK = 6;

/**
 * Limits how long a connection is read before other connections get their turn. Processed frames are counted, and the
 * clock is checked only once for several frames. One object serves all connections of a process, because only one of
 * them is read at a time.
 */
export class ReadQuantum {
  /**
   * Work that remains until the next check of the clock. Subtract the work done, and call {@link isOver} once nothing
   * remains.
   */
  remaining = WORK_PER_CLOCK_CHECK;
  readonly #nowMs: () => number;
  #endMs = Number.POSITIVE_INFINITY;
  #clockChecksLeft = Number.POSITIVE_INFINITY;

  /** `nowMs`: clock in milliseconds that never goes back. Before the first {@link begin}, the slice has no end. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Starts a slice of `spanMs` milliseconds at `nowMs`. */
  begin(nowMs: number, spanMs: number): void {
    this.remaining = WORK_PER_CLOCK_CHECK;
    this.#clockChecksLeft = MAX_CLOCK_CHECKS;
    this.#endMs = nowMs + spanMs;
  }

  /** Checks the clock. Returns whether to stop and continue in the next turn. */
  isOver(): boolean {
    this.remaining = WORK_PER_CLOCK_CHECK;
    this.#clockChecksLeft--;
    return this.#clockChecksLeft <= 0 || this.#nowMs() >= this.#endMs;
  }
}

/** Classification of the first bytes of a connection. `more`: undecided, more bytes are needed. */
type PrefaceVerdict = 'more' | 'http2' | 'http1' | 'garbage';

/** Maximum length of an HTTP/1 method. Longer sequences of capital letters are garbage. */
const MAX_METHOD_BYTES = 20;
/** Length of `PRI `, which an HTTP/1 request with a custom method may have in common with the preface. */
const PRI_METHOD_BYTES = 4;
const HTTP1 = /^[A-Z]+ (?:\/|\*|http)/;
const HTTP1_BEGINNING = /^[A-Z]+(?: (?:h(?:t(?:tp?)?)?)?)?$/;

/**
 * Distinguishes the HTTP/2 preface (RFC 9113 section 3.4) from an HTTP/1 request line and from everything else. Decides
 * after as few bytes as possible, in chunks that may be split anywhere.
 */
export class PrefaceReader {
  /** Number of bytes of the last chunk that belong to the preface, if the result is `http2`. */
  used = 0;
  #matched = 0;
  #seen = '';

  read(chunk: Buffer): PrefaceVerdict {
    if (this.#seen === '') {
      let at = 0;
      while (
        at < chunk.length &&
        this.#matched < CLIENT_PREFACE.length &&
        chunk[at] === CLIENT_PREFACE[this.#matched]
      ) {
        at++;
        this.#matched++;
      }
      this.used = at;
      if (this.#matched === CLIENT_PREFACE.length) return 'http2';
      if (at === chunk.length) return 'more';
      if (this.#matched > PRI_METHOD_BYTES) return 'garbage';
      this.#seen = CLIENT_PREFACE.toString('latin1', 0, this.#matched);
      return this.#classify(chunk, at);
    }
    return this.#classify(chunk, 0);
  }

  #classify(chunk: Buffer, from: number): PrefaceVerdict {
    for (let at = from; at < chunk.length; at++) {
      this.#seen += String.fromCharCode(chunk[at] as number);
      if (HTTP1.test(this.#seen)) return 'http1';
      const method = this.#seen.indexOf(' ');
      if (!HTTP1_BEGINNING.test(this.#seen) || (method < 0 && this.#seen.length > MAX_METHOD_BYTES))
        return 'garbage';
    }
    return 'more';
  }
}

const HTTP1_BODY =
  'This port accepts only gRPC over HTTP/2. Use a gRPC client, or HTTP/2 with prior knowledge.\n';

/** The answer to an HTTP/1 request. */
export const HTTP1_ANSWER = Buffer.from(
  'HTTP/1.1 505 HTTP Version Not Supported\r\n' +
    'content-type: text/plain\r\n' +
    `content-length: ${HTTP1_BODY.length}\r\n` +
    'connection: close\r\n' +
    `\r\n${HTTP1_BODY}`,
  'latin1',
);
