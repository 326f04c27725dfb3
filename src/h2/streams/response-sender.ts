import { checkInvariant } from '../../runtime/invariant.js';
import { CONTROL_FRAMES_PER_MESSAGE, type ControlBudget } from '../control-budget.js';
import {
  FLAG,
  FRAME_HEADER_BYTES,
  FRAME_TYPE,
  INITIAL_WINDOW_BYTES,
  MIN_MAX_FRAME_BYTES,
  type OutputBuffer,
  writeFrameHeader,
} from '../frames.js';
import { HpackEncoder } from '../hpack/encoder.js';
import type { HeaderField } from '../hpack/header-field.js';
import type { BodyWriter } from '../request-handler.js';
import { type H2Stream, sendable } from './stream.js';

const NO_BYTES = new Uint8Array(0);
/** Up to this many bytes, a loop copies faster than `set`. */
const LOOP_BYTES = 24;

/** Receives the event that a response was sent. */
export interface ResponseEvents {
  /** The frame with END_STREAM is in the output. */
  onResponseSent(stream: H2Stream): void;
}

/**
 * Writes responses as frames as far as the peer's windows allow (RFC 9113 section 5.2). The rest is queued at its
 * stream. A queued stream resumes after its own WINDOW_UPDATE, or, if only the window of the connection is used up,
 * after the WINDOW_UPDATE of the connection, in the order in which streams were queued.
 */
export class ResponseSender {
  /** Octets of DATA that the peer allows on the whole connection. */
  window = INITIAL_WINDOW_BYTES;
  /** Maximum frame payload that the peer accepts. */
  maxFrameBytes = MIN_MAX_FRAME_BYTES;
  /** Octets of body that wait for windows, over all streams. */
  queuedBytes = 0;
  readonly encoder = new HpackEncoder();
  readonly #output: OutputBuffer;
  readonly #events: ResponseEvents;
  readonly #control: ControlBudget;
  readonly #waiting = new Set<H2Stream>();

  constructor(output: OutputBuffer, events: ResponseEvents, control: ControlBudget) {
    this.#control = control;
    this.#output = output;
    this.#events = events;
  }

  sendHeaders(stream: H2Stream, fields: readonly HeaderField[], endStream: boolean): void {
    stream.headersSent = true;
    this.writeHeaders(stream.id, fields, endStream);
    if (endStream) this.#finish(stream);
  }

  sendData(stream: H2Stream, bytes: Uint8Array, endStream: boolean): void {
    // Counted once for each message and not for each frame: otherwise, a peer that opens its window octet by octet
    // would earn the frames that this takes.
    this.#control.earned += CONTROL_FRAMES_PER_MESSAGE;
    let rest = 0;
    if (stream.queue === undefined) {
      rest = this.#writeData(stream, bytes, 0, endStream);
      if (rest === bytes.length) {
        if (endStream) {
          if (rest === 0) this.#writeDataFrame(stream.id, NO_BYTES, 0, 0, true);
          this.#finish(stream);
        }
        return;
      }
    }
    stream.responseEnded = endStream;
    if (rest < bytes.length) this.#enqueue(stream, bytes, rest);
  }

  sendTrailers(stream: H2Stream, fields: readonly HeaderField[]): void {
    if (stream.queue !== undefined) {
      stream.responseEnded = true;
      stream.queuedTrailers = fields;
      return;
    }
    this.writeHeaders(stream.id, fields, true);
    this.#finish(stream);
  }

  /** Kept small: handles the case that the windows and one frame have space, and both lists were sent before. */
  sendResponse(
    stream: H2Stream,
    headers: readonly HeaderField[],
    body: BodyWriter,
    trailers: readonly HeaderField[],
  ): void {
    const { encoder } = this;
    const output = this.#output;
    const headersBlock = encoder.blockOf(headers);
    const trailersBlock = encoder.blockOf(trailers);
    const maxLength = body.maxLength;
    if (
      headersBlock === undefined ||
      trailersBlock === undefined ||
      maxLength > stream.sendWindow ||
      maxLength > this.window ||
      maxLength > this.maxFrameBytes
    ) {
      this.#sendResponseInParts(stream, headers, body, trailers);
      return;
    }
    const { id } = stream;
    const headersEnd = FRAME_HEADER_BYTES + headersBlock.length;
    const trailersLength = FRAME_HEADER_BYTES + trailersBlock.length;
    const start = output.reserve(headersEnd + FRAME_HEADER_BYTES + maxLength + trailersLength);
    const { bytes } = output;
    writeFrameHeader(bytes, start, headersBlock.length, FRAME_TYPE.HEADERS, FLAG.END_HEADERS, id);
    copyInto(bytes, start + FRAME_HEADER_BYTES, headersBlock, 0, headersBlock.length);
    const dataAt = start + headersEnd + FRAME_HEADER_BYTES;
    const bodyEnd = dataAt + maxLength;
    const bodyStart = body.writeBefore(bytes, bodyEnd);
    const length = bodyEnd - bodyStart;
    if (bodyStart > dataAt) bytes.copyWithin(dataAt, bodyStart, bodyEnd);
    writeFrameHeader(bytes, start + headersEnd, length, FRAME_TYPE.DATA, 0, id);
    const at = dataAt + length;
    const flags = FLAG.END_HEADERS | FLAG.END_STREAM;
    writeFrameHeader(bytes, at, trailersBlock.length, FRAME_TYPE.HEADERS, flags, id);
    copyInto(bytes, at + FRAME_HEADER_BYTES, trailersBlock, 0, trailersBlock.length);
    output.end = at + trailersLength;
    stream.sendWindow -= length;
    this.window -= length;
    this.#control.earned += CONTROL_FRAMES_PER_MESSAGE;
    stream.headersSent = true;
    this.#finish(stream);
  }

  /** Writes a header block as a HEADERS frame, and CONTINUATION frames if it exceeds the peer's maximum frame size. */
  writeHeaders(streamId: number, fields: readonly HeaderField[], endStream: boolean): void {
    const { encoder } = this;
    const output = this.#output;
    const bound = encoder.maxLength(fields);
    const start = output.reserve(FRAME_HEADER_BYTES + bound);
    const end = encoder.encode(fields, output.bytes, start + FRAME_HEADER_BYTES);
    const length = end - start - FRAME_HEADER_BYTES;
    const endFlag = endStream ? FLAG.END_STREAM : 0;
    if (length <= this.maxFrameBytes) {
      writeFrameHeader(output.bytes, start, length, FRAME_TYPE.HEADERS, FLAG.END_HEADERS | endFlag, streamId);
      output.end = end;
      return;
    }
    const block = Buffer.from(output.bytes.subarray(start + FRAME_HEADER_BYTES, end));
    for (let from = 0; from < block.length; from += this.maxFrameBytes) {
      const to = Math.min(block.length, from + this.maxFrameBytes);
      const at = output.reserve(FRAME_HEADER_BYTES + to - from);
      const flags = (from === 0 ? endFlag : 0) | (to === block.length ? FLAG.END_HEADERS : 0);
      const type = from === 0 ? FRAME_TYPE.HEADERS : FRAME_TYPE.CONTINUATION;
      writeFrameHeader(output.bytes, at, to - from, type, flags, streamId);
      block.copy(output.bytes, at + FRAME_HEADER_BYTES, from, to);
      output.end = at + FRAME_HEADER_BYTES + to - from;
    }
  }

  /**
   * Sends queued data after the stream's window has grown, as far as it allows. Returns true if the queue has become
   * empty.
   */
  resume(stream: H2Stream): boolean {
    const { queue } = stream;
    if (queue === undefined) return false;
    while (queue.length > 0) {
      const first = queue[0] as Uint8Array;
      const before = stream.queueOffset;
      const last = queue.length === 1 && stream.responseEnded && stream.queuedTrailers === undefined;
      const after = this.#writeData(stream, first, before, last);
      stream.queueOffset = after;
      stream.queuedBytes -= after - before;
      this.queuedBytes -= after - before;
      if (after < first.length) {
        if (stream.sendWindow > 0) this.#waiting.add(stream);
        return false;
      }
      queue.shift();
      stream.queueOffset = 0;
    }
    stream.queue = undefined;
    this.#waiting.delete(stream);
    if (stream.queuedTrailers !== undefined) {
      this.writeHeaders(stream.id, stream.queuedTrailers, true);
      stream.queuedTrailers = undefined;
    }
    if (stream.responseEnded) this.#finish(stream);
    return true;
  }

  /**
   * Returns the next stream that waits for the connection's window, if that window is open. The caller must
   * {@link resume} it.
   */
  nextWaiting(): H2Stream | undefined {
    if (this.window <= 0) return undefined;
    for (const stream of this.#waiting) {
      this.#waiting.delete(stream);
      return stream;
    }
    return undefined;
  }

  /** Discards the queue of a stream that has closed. */
  discard(stream: H2Stream): void {
    if (stream.queue === undefined) return;
    this.queuedBytes -= stream.queuedBytes;
    checkInvariant(this.queuedBytes >= 0, "a stream's queue is discarded only once");
    stream.queuedBytes = 0;
    stream.queue = undefined;
    stream.queuedTrailers = undefined;
    this.#waiting.delete(stream);
  }

  #sendResponseInParts(
    stream: H2Stream,
    headers: readonly HeaderField[],
    body: BodyWriter,
    trailers: readonly HeaderField[],
  ): void {
    this.sendHeaders(stream, headers, false);
    const space = Buffer.allocUnsafe(body.maxLength);
    const message = space.subarray(body.writeBefore(space, space.length));
    if (trailers.length === 0) {
      this.sendData(stream, message, true);
      return;
    }
    if (message.length > 0) this.sendData(stream, message, false);
    this.sendTrailers(stream, trailers);
  }

  /**
   * Writes as many bytes of `bytes[from, …)` in DATA frames as the windows allow. Returns the offset of the first
   * unsent byte.
   */
  #writeData(stream: H2Stream, bytes: Uint8Array, from: number, endStream: boolean): number {
    let at = from;
    while (at < bytes.length) {
      const room = Math.min(sendable(stream.sendWindow, this.window), this.maxFrameBytes, bytes.length - at);
      if (room === 0) break;
      this.#writeDataFrame(stream.id, bytes, at, at + room, endStream && at + room === bytes.length);
      stream.sendWindow -= room;
      this.window -= room;
      at += room;
    }
    return at;
  }

  #writeDataFrame(id: number, bytes: Uint8Array, from: number, to: number, endStream: boolean): void {
    const at = this.#output.reserve(FRAME_HEADER_BYTES + to - from);
    writeFrameHeader(this.#output.bytes, at, to - from, FRAME_TYPE.DATA, endStream ? FLAG.END_STREAM : 0, id);
    copyInto(this.#output.bytes, at + FRAME_HEADER_BYTES, bytes, from, to);
    this.#output.end = at + FRAME_HEADER_BYTES + to - from;
  }

  #enqueue(stream: H2Stream, bytes: Uint8Array, from: number): void {
    const copy = Buffer.from(bytes.subarray(from));
    if (stream.queue === undefined) {
      stream.queue = [copy];
      stream.queueOffset = 0;
      // A stream whose own window is used up resumes after its own WINDOW_UPDATE.
      if (stream.sendWindow > 0) this.#waiting.add(stream);
    } else {
      stream.queue.push(copy);
    }
    stream.queuedBytes += copy.length;
    this.queuedBytes += copy.length;
  }

  #finish(stream: H2Stream): void {
    stream.responseEnded = true;
    this.#events.onResponseSent(stream);
  }
}

function copyInto(target: Buffer, at: number, source: Uint8Array, from: number, to: number): void {
  if (to - from > LOOP_BYTES) {
    target.set(from === 0 && to === source.length ? source : source.subarray(from, to), at);
    return;
  }
  for (let index = from; index < to; index++) target[at + index - from] = source[index] as number;
}
