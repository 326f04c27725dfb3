/** Texts that are remembered; a power of two. */
const SLOTS = 4096;
/** Longer texts are decoded each time. Bytes. */
const MAX_BYTES = 64;
/** FNV's 32 bit prime. */
const HASH_PRIME = 0x0100_0193;

/**
 * Turns UTF-8 into strings, and remembers the short ones: domains, entry keys and most values come again and again, and comparing
 * their bytes is several times cheaper than making a string. The string it returns has its hash computed already, too, if
 * it was ever looked up in a Map.
 *
 * Direct-mapped: each text has one slot, which the last one keeps. A hit is only ever decided by comparing all bytes, so texts
 * made to collide cost their sender's requests some time, and nothing else. Takes 256 KiB and 4,096 strings of at most 64 bytes.
 */
export class TextTable {
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #bytes = new Uint8Array(SLOTS * MAX_BYTES);
  readonly #texts: string[] = new Array<string>(SLOTS).fill('');

  /** The text in `bytes[start, end)`; U+FFFD stands for what is not UTF-8. */
  read(bytes: Uint8Array, start: number, end: number): string {
    const length = end - start;
    if (length === 0) return '';
    if (length > MAX_BYTES) return decode(bytes, start, end);
    let hash = length;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), HASH_PRIME);
    const slot = (hash ^ (hash >>> 16)) & (SLOTS - 1);
    if (this.#lengths[slot] === length) {
      const kept = this.#bytes;
      let at = start;
      let keptAt = slot * MAX_BYTES;
      while (at < end && kept[keptAt] === bytes[at]) {
        at++;
        keptAt++;
      }
      if (at === end) return this.#texts[slot] as string;
    }
    return this.#remember(slot, bytes, start, end);
  }

  #remember(slot: number, bytes: Uint8Array, start: number, end: number): string {
    const text = decode(bytes, start, end);
    const kept = this.#bytes;
    let keptAt = slot * MAX_BYTES;
    for (let at = start; at < end; at++) kept[keptAt++] = bytes[at] as number;
    this.#lengths[slot] = end - start;
    this.#texts[slot] = text;
    return text;
  }
}

/** Node's own UTF-8 decoder, which puts U+FFFD where the WHATWG Encoding Standard does, and keeps a byte order mark. */
function decode(bytes: Uint8Array, start: number, end: number): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString('utf8', start, end);
}
