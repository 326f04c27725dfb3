/**
 * Bytes of a piece of memory: a page of a view's text, which ends with the line that makes it 16 KiB long. A longer one
 * has memory of its own, once.
 */
const PIECE_BYTES = 18 * 1024;
/** Memory that no text has needed for so long is given back. */
export const KEPT_MS = 120_000;

/**
 * Memory for the pages of one view's texts, which is used again once nobody reads a text any more. Memory outside of
 * V8's heap that each text takes anew makes V8 collect the whole heap once a text or so: at 100,000 series that is 37
 * MB, and a stop of 10 to 20 ms.
 */
export class PageBufferPool {
  #free: Buffer[] = [];
  /** Most pieces that are worth keeping: those of the last text. */
  #most = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `text` in UTF-8. */
  encode(text: string): Buffer {
    const bytes = Buffer.byteLength(text);
    if (bytes > PIECE_BYTES) return Buffer.from(text);
    const piece = this.#free.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
    piece.write(text);
    return piece.subarray(0, bytes);
  }

  /**
   * Lends the pages of a text to all who get hold of it in this turn of the event loop: each calls the function
   * returned, and calls back once it has done with them. The memory is free when all have, or at the end of the turn if
   * nobody has called.
   */
  lend(pages: readonly Buffer[]): () => () => void {
    this.#most = pages.length;
    let readers = 1;
    const leave = (): void => {
      if (--readers === 0) this.#takeBack(pages);
    };
    setImmediate(leave);
    return () => {
      readers++;
      let isDone = false;
      return () => {
        if (!isDone) leave();
        isDone = true;
      };
    };
  }

  #takeBack(pages: readonly Buffer[]): void {
    for (const { buffer } of pages) {
      if (this.#free.length >= this.#most) break;
      if (buffer.byteLength === PIECE_BYTES) this.#free.push(Buffer.from(buffer));
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#free = [];
    }, KEPT_MS).unref();
  }
}
