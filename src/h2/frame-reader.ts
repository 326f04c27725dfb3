import { freeBuffer } from '../runtime/free-buffer.js';
import { FRAME_HEADER_BYTES } from './frame/frame-type.js';
import { readUint31 } from './frame/payload.js';
import type { WorkSlice } from './work-slice.js';

/** Takes frames from a {@link FrameReader}. */
export interface FrameConsumer {
  /**
   * A whole frame; its payload is `bytes[start, end)`, only valid during the call. False stops the reading for good.
   */
  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean;
  /** A frame header announces `length` bytes, more than allowed. The reading has stopped for good. */
  onOversizedFrame(length: number): void;
}

const FIRST_HELD_BYTES = 512;
/**
 * Room that is kept for the next frame that is cut, until {@link FrameReader.trim}: making it anew for each chunk
 * doubles what a flood costs.
 */
const KEPT_BYTES = 2048;
const NOTHING = Buffer.alloc(0);

/**
 * Cuts chunks into frames (RFC 9113 section 4.1). Frames that lie whole in a chunk are handed on where they are; only
 * the frame that a chunk's end cuts is copied, and continued with the next chunk.
 */
export class FrameReader {
  readonly #consumer: FrameConsumer;
  readonly #maxFrameBytes: number;
  readonly #slice: WorkSlice;
  #held: Buffer = NOTHING;
  #heldLength = 0;
  #stopped = false;

  /** `slice`: reading stops after the frame that ends it. */
  constructor(consumer: FrameConsumer, maxFrameBytes: number, slice: WorkSlice) {
    this.#consumer = consumer;
    this.#maxFrameBytes = maxFrameBytes;
    this.#slice = slice;
  }

  /** Memory of the frame that a chunk's end has cut. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** Gives up room that no frame is in: idle connections, of which there may be many, hold nothing. */
  trim(): void {
    if (this.#heldLength === 0) this.#held = NOTHING;
  }

  /** Nothing is read or held any more. */
  stop(): void {
    this.#stopped = true;
    freeBuffer(this.#held);
    this.#held = NOTHING;
    this.#heldLength = 0;
  }

  /**
   * Takes `chunk[from, chunk.length)`, or as much of it as the slice of work allows. Returns where it goes on:
   * `chunk.length` when all is taken.
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
   * Completes the held frame and hands it on. Returns where the chunk goes on, or -1 when it is used up or reading
   * stopped.
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
    // The consumer may call `stop`, which frees what is held.
    this.#held = NOTHING;
    this.#heldLength = 0;
    const goesOn = this.#consumer.onFrame(
      frame[3] as number,
      frame[4] as number,
      readUint31(frame, 5),
      frame,
      FRAME_HEADER_BYTES,
      size,
    );
    if (goesOn && !this.#stopped && frame.length <= KEPT_BYTES) this.#held = frame;
    else freeBuffer(frame);
    if (goesOn) return at;
    this.stop();
    return -1;
  }

  /**
   * Keeps `chunk[start, end)`. The room doubles with what has really come, so that announcing long frames costs a peer
   * bytes.
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
