/** Texts that are remembered; a power of two. */
const SLOTS = 4096;
/** Longer texts are decoded each time. Bytes. */
const MAX_BYTES = 64;
/** FNV's 32 bit prime. */
const HASH_PRIME = 0x0100_0193;

/**
 * Turns UTF-8 into strings, and remembers the short ones: domains, entry keys and most values come again and again, and
 * comparing their bytes is several times cheaper than making a string.
 *
 * A text has two slots, side by side, that its hash tells. It is taken in at once while one of them is free. One that
 * finds both taken drops another when it is missed twice without another in between, so that values which never come
 * again push little out. A hit is only ever decided by comparing all bytes: texts made to collide cost their sender's
 * requests some time, and nothing else. Takes 300 KiB and 4,096 strings of at most 64 bytes.
 */
export class StringCache {
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #bytes = new Uint8Array(SLOTS * MAX_BYTES);
  /** The hash that was last looked for in vain, by slot. */
  readonly #missed = new Int32Array(SLOTS);
  readonly #texts: string[] = new Array<string>(SLOTS).fill('');

  /** The text in `bytes[start, end)`; U+FFFD stands for what is not UTF-8. */
  read(bytes: Uint8Array, start: number, end: number): string {
    const length = end - start;
    if (length === 0) return '';
    if (length > MAX_BYTES) return decode(bytes, start, end);
    let hash = length;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), HASH_PRIME);
    const slot = (hash ^ (hash >>> 16)) & (SLOTS - 1);
    if (this.#holds(slot, bytes, start, length)) return this.#texts[slot] as string;
    if (this.#holds(slot ^ 1, bytes, start, length)) return this.#texts[slot ^ 1] as string;
    const text = decode(bytes, start, end);
    if (this.#lengths[slot] === 0) this.#remember(slot, bytes, start, end, text);
    else if (this.#lengths[slot ^ 1] === 0) this.#remember(slot ^ 1, bytes, start, end, text);
    else if (this.#missed[slot] === hash) this.#remember(slot, bytes, start, end, text);
    else this.#missed[slot] = hash;
    return text;
  }

  #holds(slot: number, bytes: Uint8Array, start: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const kept = this.#bytes;
    const from = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) if (kept[from + i] !== bytes[start + i]) return false;
    return true;
  }

  #remember(slot: number, bytes: Uint8Array, start: number, end: number, text: string): void {
    const kept = this.#bytes;
    let at = slot * MAX_BYTES;
    for (let from = start; from < end; from++) kept[at++] = bytes[from] as number;
    this.#lengths[slot] = end - start;
    this.#texts[slot] = text;
  }
}

/** Node's own UTF-8 decoder, which puts U+FFFD where the WHATWG Encoding Standard does, and keeps a byte order mark. */
function decode(bytes: Uint8Array, start: number, end: number): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString('utf8', start, end);
}
