/** Bytes of a message's prefix: the compressed flag and a length of four bytes (gRPC over HTTP/2, Length-Prefixed-Message). */
export const PREFIX_BYTES = 5;
/** Least a buffer of a message begins with, if the message is that long. */
const FIRST_BUFFER_BYTES = 512;

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

  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#onChange?.(-bytes);
  }
}

/** How a read went: the message needs more bytes, or is whole, or cannot be taken. */
export type ReadResult = 'more' | 'message' | 'too large' | 'no room' | 'bad flag';

/** Gathers length-prefixed messages from pieces cut anywhere, one after the other. Memory grows with what has come, not with what was announced. */
export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #budget: ReceiveBudget;
  #prefixBytes = 0;
  #flag = 0;
  #length = 0;
  #buffer: Buffer | undefined;
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
    const piece = Math.min(end - at, this.#length - this.#filled);
    if (piece > 0) {
      if (!this.#reserve(this.#filled + piece)) return 'no room';
      chunk.copy(this.#buffer as Buffer, this.#filled, at, at + piece);
      this.#filled += piece;
    }
    this.#position = at + piece;
    return this.#filled === this.#length ? 'message' : 'more';
  }

  /** The whole message, which stays in the budget until {@link drop}. */
  get message(): Buffer {
    return this.#buffer ?? EMPTY;
  }

  /** The whole message; it belongs to the caller, and the budget has its bytes back. The next message may come. */
  take(): Buffer {
    const message = this.message;
    this.drop();
    return message;
  }

  /** Forgets the message at hand. */
  drop(): void {
    if (this.#buffer !== undefined) this.#budget.give(this.#buffer.length);
    this.#buffer = undefined;
    this.#prefixBytes = 0;
    this.#length = 0;
    this.#filled = 0;
  }

  /** Doubles the buffer until `bytes` fit, never beyond the message's length. */
  #reserve(bytes: number): boolean {
    const held = this.#buffer?.length ?? 0;
    if (bytes <= held) return true;
    const size = Math.min(this.#length, Math.max(bytes, 2 * held, FIRST_BUFFER_BYTES));
    if (!this.#budget.take(size - held)) return false;
    const grown = Buffer.allocUnsafe(size);
    this.#buffer?.copy(grown, 0, 0, this.#filled);
    this.#buffer = grown;
    return true;
  }
}
