/** Longest line in bytes. A longer one is not read, and counts as unreadable. */
export const MAX_LINE_BYTES = 1024 * 1024;

const LINE_FEED = 0x0a;
const NO_BYTES = Buffer.alloc(0);
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Complete lines. */
export interface Lines {
  readonly bytes: Buffer;
  /** The same lines, with one character for each byte, so that positions are equal. */
  readonly text: string;
  /** Number of lines after them that were too long. */
  readonly tooLong: number;
}

/** Cuts chunks of bytes at line feeds. */
export class LineSplitter {
  #rest: Buffer = NO_BYTES;
  #isFirst = true;
  /** Whether the rest of a line that is too long is skipped. */
  #skips = false;

  /** Returns the lines that end in a chunk. */
  split(chunk: Buffer): Lines {
    let rest = chunk;
    let tooLong = 0;
    if (this.#skips) {
      const end = rest.indexOf(LINE_FEED);
      if (end < 0) return linesOf(NO_BYTES, 0);
      this.#skips = false;
      rest = rest.subarray(end + 1);
    }
    const end = rest.lastIndexOf(LINE_FEED) + 1;
    const bytes = end === 0 ? NO_BYTES : Buffer.concat([this.#rest, rest.subarray(0, end)]);
    this.#rest = end === 0 ? Buffer.concat([this.#rest, rest]) : Buffer.from(rest.subarray(end));
    if (this.#rest.length > MAX_LINE_BYTES) {
      this.#rest = NO_BYTES;
      this.#skips = true;
      tooLong = 1;
    }
    return linesOf(this.#withoutMark(bytes), tooLong);
  }

  /** Returns the last line, which may lack its line feed. */
  end(): Lines {
    const bytes = this.#rest;
    this.#rest = NO_BYTES;
    return linesOf(this.#withoutMark(bytes), 0);
  }

  #withoutMark(bytes: Buffer): Buffer {
    if (!this.#isFirst || bytes.length === 0) return bytes;
    this.#isFirst = false;
    return bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? bytes.subarray(3) : bytes;
  }
}

function linesOf(bytes: Buffer, tooLong: number): Lines {
  return { bytes, text: bytes.toString('latin1'), tooLong };
}
