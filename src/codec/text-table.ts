/** Texts that are remembered; a power of two. */
const SLOTS = 4096;
/** How many slots, side by side, a text may have; a power of two. */
const WAYS = 4;
/** Longer texts are decoded each time. Bytes. */
const MAX_BYTES = 64;
/** FNV's 32 bit prime. */
const HASH_PRIME = 0x0100_0193;

/**
 * Turns UTF-8 into strings, and remembers the short ones: domains, entry keys and most values come again and again, and
 * comparing their bytes is several times cheaper than making a string.
 *
 * The hash of a text tells which four slots it may have; it is taken in when it is missed twice without another in
 * between, so that values which never come again push nothing out. A hit is only ever decided by comparing all bytes:
 * texts made to collide cost their sender's requests some time, and nothing else. Takes 316 KiB and 4,096 strings of at
 * most 64 bytes.
 */
export class TextTable {
  readonly #hashes = new Int32Array(SLOTS);
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
    for (let way = 0; way < WAYS; way++) {
      const at = slot ^ way;
      if (this.#hashes[at] === hash && this.#holds(at, bytes, start, length))
        return this.#texts[at] as string;
    }
    const text = decode(bytes, start, end);
    if (this.#missed[slot] !== hash) this.#missed[slot] = hash;
    else this.#remember(slot, hash, bytes, start, end, text);
    return text;
  }

  #holds(slot: number, bytes: Uint8Array, start: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const kept = this.#bytes;
    const from = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) if (kept[from + i] !== bytes[start + i]) return false;
    return true;
  }

  #remember(slot: number, hash: number, bytes: Uint8Array, start: number, end: number, text: string): void {
    let way = 0;
    while (way < WAYS && this.#lengths[slot ^ way] !== 0) way++;
    const at = way < WAYS ? slot ^ way : slot;
    this.#hashes[at] = hash;
    const kept = this.#bytes;
    let keptAt = at * MAX_BYTES;
    for (let from = start; from < end; from++) kept[keptAt++] = bytes[from] as number;
    this.#lengths[at] = end - start;
    this.#texts[at] = text;
  }
}

/** Node's own UTF-8 decoder, which puts U+FFFD where the WHATWG Encoding Standard does, and keeps a byte order mark. */
function decode(bytes: Uint8Array, start: number, end: number): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString('utf8', start, end);
}
