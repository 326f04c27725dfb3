import { expectState } from '../../invariant.js';
import { freeBuffer } from '../../runtime/free-buffer.js';

/**
 * Bytes of a message's prefix: the compressed flag and a length of four bytes (gRPC over HTTP/2,
 * Length-Prefixed-Message).
 */
export const PREFIX_BYTES = 5;
/** Least a buffer of a message begins with, if the message is that long. */
const FIRST_BUFFER_BYTES = 512;
/** Longer buffers are not cut from Buffer's pool: a slice keeps the whole of it, 64 KiB on Node.js 24. */
const MOST_POOLED_BYTES = 1024;
/** Longer messages are gathered in pieces of this size, and put together once they are whole. Bytes. */
const PIECE_BYTES = 65_536;

const EMPTY = Buffer.alloc(0);

/** What the half-received messages of one connection hold together. */
export class ReceiveBudget {
  readonly #maxBytes: number;
  readonly #onChange: ((bytes: number) => void) | undefined;
  #bytes = 0;

  /** `onChange` is told of each change: bytes more, or less where they are negative. */
  constructor(maxBytes: number, onChange?: (bytes: number) => void) {
    this.#maxBytes = maxBytes;
    this.#onChange = onChange;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes `bytes` more, or tells that they are not there. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#bytes += bytes;
    this.#onChange?.(bytes);
    return true;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
    expectState(this.#bytes >= 0, 'no more is given back than was taken');
    this.#onChange?.(-bytes);
  }
}

/** How a read went: the message needs more bytes, or is whole, or cannot be taken. */
export type ReadResult = 'more' | 'message' | 'too large' | 'no room' | 'bad flag';

/**
 * Gathers length-prefixed messages from pieces cut anywhere, one after the other. Memory grows with what has come, not
 * with what was announced.
 */
export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #budget: ReceiveBudget;
  #prefixBytes = 0;
  #flag = 0;
  #length = 0;
  /** The beginning that is complete, in pieces of {@link PIECE_BYTES}; undefined for short messages. */
  #pieces: Buffer[] | undefined;
  /** What comes after it, as far as it has come. */
  #buffer: Buffer | undefined;
  /** Bytes in {@link #buffer}. */
  #bufferFilled = 0;
  #heldBytes = 0;
  #filled = 0;
  #position = 0;

  constructor(maxMessageBytes: number, budget: ReceiveBudget) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#budget = budget;
  }

  /** Where the last {@link read} stopped in its chunk. */
  get position(): number {
    return this.#position;
  }

  /** Length that the prefix of the message at hand announced. */
  get announcedBytes(): number {
    return this.#length;
  }

  /** Whether the message at hand is compressed. */
  get compressed(): boolean {
    return this.#flag === 1;
  }

  /** True between messages: nothing of one was read. */
  get empty(): boolean {
    return this.#prefixBytes === 0;
  }

  /** Reads on in `chunk[start, end)`, at most to the end of a message; then {@link take} it. */
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

  /** The whole message, which stays in the budget until {@link drop}. */
  get message(): Buffer {
    if (this.#pieces !== undefined) {
      const whole = Buffer.concat([...this.#pieces, this.#buffer ?? EMPTY]);
      this.#free();
      this.#buffer = whole;
    }
    return this.#buffer ?? EMPTY;
  }

  /** The whole message; it belongs to the caller, and the budget has its bytes back. The next message may come. */
  take(): Buffer {
    const message = this.lend();
    this.drop();
    return message;
  }

  /** The whole message, which {@link drop} does not free; it stays in the budget until then. */
  lend(): Buffer {
    const { message } = this;
    this.#buffer = undefined;
    return message;
  }

  /** Forgets the message at hand. */
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

  /** Doubles the buffer until `bytes` fit, never beyond the message's length, nor beyond a piece. */
  #reserve(bytes: number): boolean {
    const held = this.#buffer?.length ?? 0;
    if (bytes <= held) return true;
    const left = this.#length - this.#filled + this.#bufferFilled;
    const first = this.#pieces === undefined ? FIRST_BUFFER_BYTES : PIECE_BYTES;
    const size = Math.min(left, PIECE_BYTES, Math.max(bytes, 2 * held, first));
    if (!this.#budget.take(size - held)) return false;
    this.#heldBytes += size - held;
    const grown = size > MOST_POOLED_BYTES ? Buffer.allocUnsafeSlow(size) : Buffer.allocUnsafe(size);
    if (this.#buffer !== undefined) {
      this.#buffer.copy(grown, 0, 0, this.#bufferFilled);
      freeBuffer(this.#buffer);
    }
    this.#buffer = grown;
    return true;
  }
}
