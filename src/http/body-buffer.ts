/** Shorter pieces are copied: a Buffer for each byte would take a hundred times what it holds. */
const SHORT_BYTES = 4 * 1024;
/** Of the memory that they are copied to. */
const LEAST_BLOCK_BYTES = 1024;
const MOST_BLOCK_BYTES = 64 * 1024;

/**
 * A body as it comes, in any number of pieces. It takes at most twice its length in memory, and a KiB.
 */
export class BodyBuffer {
  readonly #pieces: Buffer[] = [];
  /** What short pieces are copied to, and how much of it is used. */
  #block: Buffer | undefined;
  #used = 0;
  #bytes = 0;

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    let from = 0;
    // A block is always filled, so that none is kept for a few bytes between long pieces.
    while (from < piece.length && (this.#block !== undefined || piece.length - from < SHORT_BYTES)) {
      const block = this.#block ?? this.#startBlock();
      const copied = piece.copy(block, this.#used, from);
      from += copied;
      this.#used += copied;
      if (this.#used === block.length) this.#endBlock();
    }
    if (from < piece.length) this.#pieces.push(piece.subarray(from));
  }

  /** All of it, in few pieces. Nothing may be added any more. */
  end(): readonly Buffer[] {
    this.#endBlock();
    return this.#pieces;
  }

  #startBlock(): Buffer {
    const bytes = Math.min(Math.max(this.#bytes, LEAST_BLOCK_BYTES), MOST_BLOCK_BYTES);
    this.#block = Buffer.allocUnsafeSlow(bytes);
    this.#used = 0;
    return this.#block;
  }

  #endBlock(): void {
    if (this.#block !== undefined) this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = undefined;
  }
}
