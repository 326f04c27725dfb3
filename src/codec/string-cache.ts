/** Number of cached strings. A power of two. */
const SLOTS = 4096;
/** Maximum length of a cached string, in bytes. */
const MAX_BYTES = 64;
/** The 32-bit prime of the FNV hash. */
const HASH_PRIME = 0x0100_0193;

/**
 * Decodes UTF-8 to strings and caches short strings. Domains, entry keys and most values recur, and comparing their
 * bytes is several times cheaper than creating a string.
 *
 * The hash of a string selects two adjacent slots. A string is stored immediately if one of them is free. Otherwise, it
 * replaces another string if it is missed twice in a row, so that values that never recur evict few strings. A hit
 * requires that all bytes are equal. Strings that are crafted to collide therefore only make the sender's own requests
 * slower. The cache occupies 300 KiB and 4,096 strings of at most 64 bytes.
 */
export class StringCache {
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #bytes = new Uint8Array(SLOTS * MAX_BYTES);
  /** Hash of the last string that was missed, by slot. */
  readonly #missed = new Int32Array(SLOTS);
  readonly #texts: string[] = new Array<string>(SLOTS).fill('');

  /** Returns the text in `bytes[start, end)`, with U+FFFD for invalid UTF-8. */
  read(bytes: Uint8Array, start: number, end: number): string {
    const length = end - start;
    if (length === 0) return '';
    if (length > MAX_BYTES) return decode(bytes, start, end);
    let hash = length;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), HASH_PRIME);
    const slot = (hash ^ (hash >>> 16)) & (SLOTS - 1);
    if (this.#matches(slot, bytes, start, length)) return this.#texts[slot] as string;
    if (this.#matches(slot ^ 1, bytes, start, length)) return this.#texts[slot ^ 1] as string;
    const text = decode(bytes, start, end);
    if (this.#lengths[slot] === 0) this.#store(slot, bytes, start, end, text);
    else if (this.#lengths[slot ^ 1] === 0) this.#store(slot ^ 1, bytes, start, end, text);
    else if (this.#missed[slot] === hash) this.#store(slot, bytes, start, end, text);
    else this.#missed[slot] = hash;
    return text;
  }

  #matches(slot: number, bytes: Uint8Array, start: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const kept = this.#bytes;
    const from = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) if (kept[from + i] !== bytes[start + i]) return false;
    return true;
  }

  #store(slot: number, bytes: Uint8Array, start: number, end: number, text: string): void {
    const kept = this.#bytes;
    let at = slot * MAX_BYTES;
    for (let from = start; from < end; from++) kept[at++] = bytes[from] as number;
    this.#lengths[slot] = end - start;
    this.#texts[slot] = text;
  }
}

/**
 * Uses Node's UTF-8 decoder, which inserts U+FFFD as the WHATWG Encoding Standard does, and keeps a byte order mark.
 */
function decode(bytes: Uint8Array, start: number, end: number): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString('utf8', start, end);
}
