/** Number of cached strings. A power of two. */
const SLOTS = 64;
/** Maximum length of a cached string in bytes. A power of two. */
const MAX_BYTES = 64;
/** Flag for the length of a Huffman-coded string. */
const HUFFMAN = 0x80;

/**
 * Caches the text of literal strings by their encoded bytes, because comparing bytes is cheaper than decoding. Clients
 * repeat a few strings in every block, such as `:path`, which most encoders never add to the dynamic table. A new
 * string replaces the one in its slot.
 */
export class LiteralCache {
  // String `slot` is stored in `bytes` from slot * MAX_BYTES on.
  readonly #bytes = new Uint8Array(SLOTS * MAX_BYTES);
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #texts: string[] = new Array<string>(SLOTS).fill('');

  /** Returns the text of source[start, end) if it is cached. */
  find(source: Uint8Array, start: number, end: number, huffman: boolean): string | undefined {
    const length = end - start;
    if (length > MAX_BYTES || length === 0) return undefined;
    const slot = slotOf(source, start, length);
    if (this.#lengths[slot] !== (huffman ? length | HUFFMAN : length)) return undefined;
    const kept = this.#bytes;
    const base = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) if (kept[base + i] !== source[start + i]) return undefined;
    return this.#texts[slot];
  }

  keep(source: Uint8Array, start: number, end: number, huffman: boolean, text: string): void {
    const length = end - start;
    if (length > MAX_BYTES || length === 0) return;
    const slot = slotOf(source, start, length);
    const base = slot * MAX_BYTES;
    for (let i = 0; i < length; i++) this.#bytes[base + i] = source[start + i] as number;
    this.#lengths[slot] = huffman ? length | HUFFMAN : length;
    this.#texts[slot] = text;
  }
}

/** Hashes the length and three bytes, which is enough to separate the few strings of a client. */
function slotOf(source: Uint8Array, start: number, length: number): number {
  const first = source[start] as number;
  const middle = source[start + (length >> 1)] as number;
  const last = source[start + length - 1] as number;
  return (length ^ (first * 3) ^ (middle * 5) ^ (last * 11)) & (SLOTS - 1);
}
