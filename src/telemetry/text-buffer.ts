/** Number of characters that are encoded together. */
const CHUNK = 4096;
/** Maximum bytes of a UTF-16 unit in UTF-8. */
const MAX_UNIT_BYTES = 3;

/**
 * A long text, encoded in UTF-8 while it grows, so that its lines are short-lived garbage. One string of the whole
 * text, or a list of its lines, takes two to three times as long, because the garbage collector copies them.
 */
export class TextBuffer {
  #bytes = Buffer.allocUnsafeSlow(64 * 1024);
  #length = 0;
  #chunk = '';

  add(text: string): void {
    this.#chunk += text;
    if (this.#chunk.length >= CHUNK) this.#encode();
  }

  /** Returns the whole text. */
  end(): Buffer {
    this.#encode();
    return this.#bytes.subarray(0, this.#length);
  }

  #encode(): void {
    const chunk = this.#chunk;
    const needed = this.#length + chunk.length * MAX_UNIT_BYTES;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#length += this.#bytes.write(chunk, this.#length);
    this.#chunk = '';
  }
}
