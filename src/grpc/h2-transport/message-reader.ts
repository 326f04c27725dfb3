import { freeBuffer } from '../../runtime/free-buffer.js';
import { checkInvariant } from '../../runtime/invariant.js';

/** Length of a message prefix: the compressed flag and a 4-byte length (gRPC over HTTP/2, Length-Prefixed-Message). */
export const PREFIX_BYTES = 5;
/** Minimum initial size of a message buffer, unless the message is shorter. */
const FIRST_BUFFER_BYTES = 512;
/**
 * Larger buffers are not taken from Buffer's pool, because a slice keeps the whole pool in memory, 64 KiB on Node.js
 * 24.
 */
const MAX_POOLED_BYTES = 1024;
/** Gzip adds at most this to data of 64 KiB that it cannot compress (RFC 1951 section 3.2.4), in bytes. */
const GZIP_OVERHEAD_BYTES = 1024;

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
    checkInvariant(this.#bytes >= 0, 'no more memory is released than was reserved');
    this.#onChange?.(-bytes);
  }
}

/** Result of a read: the message needs more bytes, is complete, or is rejected. */
export type ReadResult = 'more' | 'message' | 'too large' | 'no room' | 'bad flag';

/**
 * Collects length-prefixed messages from chunks that are split anywhere, one message at a time. Memory grows with the
 * received bytes, not with the announced length, and only up to the bytes that are kept of a message.
 */
export class MessageReader {
  readonly maxMessageBytes: number;
  readonly #budget: ReceiveBudget;
  readonly #keptBytes: number;
  #prefixBytes = 0;
  #flag = 0;
  #length = 0;
  #buffer: Buffer | undefined;
  #heldBytes = 0;
  /** Received bytes of the message, including those that are not kept. */
  #filled = 0;
  #position = 0;

  /** Of a longer message, only the first `keptBytes` are kept. A compressed one may lack its end then. */
  constructor(maxMessageBytes: number, budget: ReceiveBudget, keptBytes = maxMessageBytes) {
    this.maxMessageBytes = maxMessageBytes;
    this.#budget = budget;
    this.#keptBytes = keptBytes;
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
    if (this.#length > this.maxMessageBytes) return 'too large';
    const messageEnd = Math.min(end, at + this.#length - this.#filled);
    const keptEnd = Math.min(messageEnd, at + this.#keptLength - this.#filled);
    if (at < keptEnd) {
      if (!this.#reserve(this.#filled + keptEnd - at)) return 'no room';
      chunk.copy(this.#buffer as Buffer, this.#filled, at, keptEnd);
    }
    this.#filled += messageEnd - at;
    this.#position = messageEnd;
    return this.#filled === this.#length ? 'message' : 'more';
  }

  /** The complete message, as far as it is kept, which counts in the budget until {@link drop}. */
  get message(): Buffer {
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
    if (this.#buffer !== undefined) freeBuffer(this.#buffer);
    this.#buffer = undefined;
    this.#prefixBytes = 0;
    this.#length = 0;
    this.#filled = 0;
  }

  /** Length of the part of the message that is kept. */
  get #keptLength(): number {
    return Math.min(this.#length, this.#keptBytes + (this.compressed ? GZIP_OVERHEAD_BYTES : 0));
  }

  /** Doubles the buffer until `bytes` fit, at most to the length that is kept. */
  #reserve(bytes: number): boolean {
    const held = this.#heldBytes;
    if (bytes <= held) return true;
    const size = Math.min(this.#keptLength, Math.max(bytes, 2 * held, FIRST_BUFFER_BYTES));
    if (!this.#budget.take(size - held)) return false;
    this.#heldBytes = size;
    const grown = size > MAX_POOLED_BYTES ? Buffer.allocUnsafeSlow(size) : Buffer.allocUnsafe(size);
    if (this.#buffer !== undefined) {
      this.#buffer.copy(grown, 0, 0, this.#filled);
      freeBuffer(this.#buffer);
    }
    this.#buffer = grown;
    return true;
  }
}
