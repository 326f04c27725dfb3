/**
 * Shorter pieces are copied, because a Buffer object for each byte would take a hundred times the memory of its
 * content.
 */
const SHORT_BYTES = 4 * 1024;
/** Minimum and maximum size of the blocks that short pieces are copied to. Bytes. */
const MIN_BLOCK_BYTES = 1024;
const MAX_BLOCK_BYTES = 64 * 1024;

/** Collects a body from any number of pieces. Takes at most twice the length of the body in memory, plus one KiB. */
export class BodyBuffer {
  readonly #pieces: Buffer[] = [];
  /** The block that short pieces are copied to, and the number of bytes used in it. */
  #block: Buffer | undefined;
  #used = 0;
  #bytes = 0;

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    let from = 0;
    // A block is always filled first, so that no block is kept for a few bytes between long pieces.
    while (from < piece.length && (this.#block !== undefined || piece.length - from < SHORT_BYTES)) {
      const block = this.#block ?? this.#startBlock();
      const copied = piece.copy(block, this.#used, from);
      from += copied;
      this.#used += copied;
      if (this.#used === block.length) this.#endBlock();
    }
    if (from < piece.length) this.#pieces.push(piece.subarray(from));
  }

  /** Returns the whole body as a small number of pieces. Nothing may be added afterwards. */
  end(): readonly Buffer[] {
    this.#endBlock();
    return this.#pieces;
  }

  #startBlock(): Buffer {
    const bytes = Math.min(Math.max(this.#bytes, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES);
    this.#block = Buffer.allocUnsafeSlow(bytes);
    this.#used = 0;
    return this.#block;
  }

  #endBlock(): void {
    if (this.#block !== undefined) this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = undefined;
  }
}
