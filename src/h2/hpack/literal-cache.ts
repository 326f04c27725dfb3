/** Strings kept. A power of two. */
const SLOTS = 64;
/** Longer strings are not kept. A power of two. */
const MAX_BYTES = 64;
/** Marks the length of a string in Huffman code. */
const HUFFMAN = 0x80;

/**
 * The text of string literals that came before, by their bytes as sent: comparing those is cheaper than decoding them.
 * Clients send a few strings in every block, like `:path`, which most encoders never put into the dynamic table. Each
 * place is taken by whoever came last.
 */
export class LiteralCache {
  // String `slot` lies in `bytes` from slot * MAX_BYTES on.
  readonly #bytes = new Uint8Array(SLOTS * MAX_BYTES);
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #texts: string[] = new Array<string>(SLOTS).fill('');

  /** The text of source[start, end), if it is here. */
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

/** By length and three of its bytes, which is enough to part the few strings of a client. */
function slotOf(source: Uint8Array, start: number, length: number): number {
  const first = source[start] as number;
  const middle = source[start + (length >> 1)] as number;
  const last = source[start + length - 1] as number;
  return (length ^ (first * 3) ^ (middle * 5) ^ (last * 11)) & (SLOTS - 1);
}
