/**
 * Bytes of a buffer. It holds a page of a view's text, which ends with the first line that reaches 16 KiB. A longer
 * page gets its own buffer.
 */
const PIECE_BYTES = 18 * 1024;
/** Time in milliseconds after which unused buffers are freed. */
export const RETENTION_MS = 120_000;

/**
 * A pool of buffers for the pages of one view's texts. Buffers are reused when no reader needs a text any more.
 * External memory that is allocated for each text makes V8 collect the whole heap about once a text: with 100,000
 * series, that is 37 MB and a pause of 10 to 20 ms.
 */
export class PageBufferPool {
  #free: Buffer[] = [];
  /** Maximum number of buffers to keep: the number of the last text. */
  #maxBuffers = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Encodes `text` in UTF-8. */
  encode(text: string): Buffer {
    const bytes = Buffer.byteLength(text);
    if (bytes > PIECE_BYTES) return Buffer.from(text);
    const piece = this.#free.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
    piece.write(text);
    return piece.subarray(0, bytes);
  }

  /**
   * Lends the pages of a text to all who receive it in this turn of the event loop. Each borrower calls the returned
   * function, and calls its result when it no longer needs the pages. The buffers are free when all borrowers have done
   * so, or at the end of the turn if there are no borrowers.
   */
  lend(pages: readonly Buffer[]): () => () => void {
    this.#maxBuffers = pages.length;
    let readers = 1;
    const leave = (): void => {
      if (--readers === 0) this.#reclaim(pages);
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

  #reclaim(pages: readonly Buffer[]): void {
    for (const { buffer } of pages) {
      if (this.#free.length >= this.#maxBuffers) break;
      if (buffer.byteLength === PIECE_BYTES) this.#free.push(Buffer.from(buffer));
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#free = [];
    }, RETENTION_MS).unref();
  }
}
