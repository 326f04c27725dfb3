import { expectState } from '../../invariant.js';
import { freeBuffer } from '../../runtime/free-buffer.js';

/** Length of a message prefix: the compressed flag and a 4-byte length (gRPC over HTTP/2, Length-Prefixed-Message). */
export const PREFIX_BYTES = 5;
/** Minimum initial size of a message buffer, unless the message is shorter. */
const FIRST_BUFFER_BYTES = 512;
/**
 * Larger buffers are not taken from Buffer's pool, because a slice keeps the whole pool in memory, 64 KiB on Node.js
 * 24.
 */
const MAX_POOLED_BYTES = 1024;
/** Longer messages are collected in pieces of this size and joined when they are complete. Bytes. */
const PIECE_BYTES = 65_536;

const EMPTY = Buffer.alloc(0);

/** Limits the memory that incomplete messages of one connection hold together. */
export class ReceiveBudget {
  readonly #maxBytes: number;
  readonly #onChange: ((bytes: number) => void) | undefined;
  #bytes = 0;

  /** `onChange` receives each change in bytes, negative if memory was released. */
  constructor(maxBytes: number, onChange?: (bytes: number) => void) {
    this.#maxBytes = maxBytes;
    this.#onChange = onChange;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves `bytes`. Returns false if they exceed the budget. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    this.#onChange?.(bytes);
    return true;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
    expectState(this.#bytes >= 0, 'no more memory is released than was reserved');
    this.#onChange?.(-bytes);
  }
}

/** Result of a read: the message needs more bytes, is complete, or is rejected. */
export type ReadResult = 'more' | 'message' | 'too large' | 'no room' | 'bad flag';

/**
 * Collects length-prefixed messages from chunks that are split anywhere, one message at a time. Memory grows with the
 * received bytes, not with the announced length.
 */
export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #budget: ReceiveBudget;
  #prefixBytes = 0;
  #flag = 0;
  #length = 0;
  /** The complete pieces of {@link PIECE_BYTES} at the start of the message. Undefined for short messages. */
  #pieces: Buffer[] | undefined;
  /** The received data after the complete pieces. */
  #buffer: Buffer | undefined;
  /** Number of bytes used in {@link #buffer}. */
  #bufferFilled = 0;
  #heldBytes = 0;
  #filled = 0;
  #position = 0;

  constructor(maxMessageBytes: number, budget: ReceiveBudget) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#budget = budget;
  }

  /** Offset in the chunk at which the last {@link read} stopped. */
  get position(): number {
    return this.#position;
  }

  /** Length of the current message, as announced by its prefix. */
  get announcedBytes(): number {
    return this.#length;
  }

  /** Whether the current message is compressed. */
  get compressed(): boolean {
    return this.#flag === 1;
  }

  /** Whether no part of a message was read yet. */
  get empty(): boolean {
    return this.#prefixBytes === 0;
  }

  /** Reads `chunk[start, end)`, at most to the end of a message. Then {@link take} the message. */
  read(chunk: Buffer, start: number, end: number): ReadResult {
    let at = start;
    while (this.#prefixBytes < PREFIX_BYTES) {
      if (at === end) {
        this.#position = at;
        return 'more';
      }
      const byte = chunk[at++] as number;
      if (this.#prefixBytes++ === 0) this.#flag = byte;
      else this.#length = this.#length * 256 + byte;
    }
    if (this.#flag > 1) return 'bad flag';
    if (this.#length > this.#maxMessageBytes) return 'too large';
    while (at < end && this.#filled < this.#length) {
      const room = Math.min(end - at, this.#length - this.#filled, PIECE_BYTES - this.#bufferFilled);
      if (!this.#reserve(this.#bufferFilled + room)) return 'no room';
      chunk.copy(this.#buffer as Buffer, this.#bufferFilled, at, at + room);
      this.#bufferFilled += room;
      this.#filled += room;
      at += room;
      if (this.#bufferFilled === PIECE_BYTES && this.#filled < this.#length) this.#nextPiece();
    }
    this.#position = at;
    return this.#filled === this.#length ? 'message' : 'more';
  }

  /** The complete message, which counts in the budget until {@link drop}. */
  get message(): Buffer {
    if (this.#pieces !== undefined) {
      const whole = Buffer.concat([...this.#pieces, this.#buffer ?? EMPTY]);
      this.#free();
      this.#buffer = whole;
    }
    return this.#buffer ?? EMPTY;
  }

  /**
   * Returns the complete message and releases its bytes from the budget. The caller owns the message, and the next one
   * can be read.
   */
  take(): Buffer {
    const message = this.lend();
    this.drop();
    return message;
  }

  /** Returns the complete message. {@link drop} does not free it, and it counts in the budget until then. */
  lend(): Buffer {
    const { message } = this;
    this.#buffer = undefined;
    return message;
  }

  /** Discards the current message. */
  drop(): void {
    if (this.#heldBytes > 0) this.#budget.release(this.#heldBytes);
    this.#heldBytes = 0;
    this.#free();
    this.#bufferFilled = 0;
    this.#prefixBytes = 0;
    this.#length = 0;
    this.#filled = 0;
  }

  #free(): void {
    if (this.#pieces !== undefined) for (const piece of this.#pieces) freeBuffer(piece);
    this.#pieces = undefined;
    if (this.#buffer !== undefined) freeBuffer(this.#buffer);
    this.#buffer = undefined;
  }

  #nextPiece(): void {
    this.#pieces ??= [];
    this.#pieces.push(this.#buffer as Buffer);
    this.#buffer = undefined;
    this.#bufferFilled = 0;
  }

  /** Doubles the buffer until `bytes` fit, at most to the message length or the piece size. */
  #reserve(bytes: number): boolean {
    const held = this.#buffer?.length ?? 0;
    if (bytes <= held) return true;
    const left = this.#length - this.#filled + this.#bufferFilled;
    const first = this.#pieces === undefined ? FIRST_BUFFER_BYTES : PIECE_BYTES;
    const size = Math.min(left, PIECE_BYTES, Math.max(bytes, 2 * held, first));
    if (!this.#budget.take(size - held)) return false;
    this.#heldBytes += size - held;
    const grown = size > MAX_POOLED_BYTES ? Buffer.allocUnsafeSlow(size) : Buffer.allocUnsafe(size);
    if (this.#buffer !== undefined) {
      this.#buffer.copy(grown, 0, 0, this.#bufferFilled);
      freeBuffer(this.#buffer);
    }
    this.#buffer = grown;
    return true;
  }
}
