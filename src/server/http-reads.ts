/** Who is read on. */
export interface Reader {
  readOn(): void;
}

/** What Node.js reads of a socket at once: when it is all of that, more is there. Bytes. */
export const FULL_READ_BYTES = 64 * 1024;
/** So many connections that send a lot are read on in one turn of the event loop. */
const READ_IN_A_TURN = 8;

/**
 * Shares the event loop among connections that send long bodies: left alone, Node.js reads up to 2 MiB of each socket before the next one has its turn. Here
 * a socket that gave all that is read at once waits for a later turn, behind those that wait already.
 */
export class HttpReads {
  readonly #waiting = new Set<Reader>();
  #isScheduled = false;

  /** `reader` is to be read on, in a turn to come; its socket is not read until then. */
  wait(reader: Reader): void {
    this.#waiting.add(reader);
    this.#schedule();
  }

  /** It is gone. */
  forget(reader: Reader): void {
    this.#waiting.delete(reader);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      let count = 0;
      for (const reader of this.#waiting) {
        if (++count > READ_IN_A_TURN) break;
        this.#waiting.delete(reader);
        reader.readOn();
      }
      this.#schedule();
    });
  }
}
