import type { HeaderList } from './header-field.js';

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

/** Number of cached blocks, so that a client may alternate between a few calls. A power of two. */
const BLOCK_SLOTS = 4;
/** Maximum length of a cached block in bytes. Once the table is stable, repeated blocks are much shorter. */
const MAX_BLOCK_BYTES = 256;

/** Caches the last few blocks of a connection that did not change the dynamic table, with their decoded lists. */
export class RecentBlocks {
  // Allocated with the first block. Block `slot` is stored in `bytes` from slot * MAX_BLOCK_BYTES on.
  #bytes: Uint8Array | undefined = undefined;
  readonly #lengths: number[] = [0, 0, 0, 0];
  readonly #tableStates: number[] = [-1, -1, -1, -1];
  readonly #lists: (HeaderList | undefined)[] = [undefined, undefined, undefined, undefined];
  #lastUsed = 0;

  /**
   * Returns the decoded list of the same bytes with the same `tableState`, a number that identifies the state of the
   * dynamic table.
   */
  find(block: Uint8Array, start: number, end: number, tableState: number): HeaderList | undefined {
    const kept = this.#bytes;
    if (kept === undefined) return undefined;
    const length = end - start;
    for (let i = 0; i < BLOCK_SLOTS; i++) {
      const slot = (this.#lastUsed + i) & (BLOCK_SLOTS - 1);
      if (this.#lengths[slot] !== length || this.#tableStates[slot] !== tableState) continue;
      if (!equals(kept, slot * MAX_BLOCK_BYTES, block, start, length)) continue;
      this.#lastUsed = slot;
      return this.#lists[slot];
    }
    return undefined;
  }

  /** Stores a block in the slot that {@link find} checks last. */
  keep(block: Uint8Array, start: number, end: number, tableState: number, list: HeaderList): void {
    const length = end - start;
    if (length > MAX_BLOCK_BYTES) return;
    this.#bytes ??= new Uint8Array(BLOCK_SLOTS * MAX_BLOCK_BYTES);
    const slot = (this.#lastUsed + BLOCK_SLOTS - 1) & (BLOCK_SLOTS - 1);
    const kept = this.#bytes;
    const base = slot * MAX_BLOCK_BYTES;
    for (let i = 0; i < length; i++) kept[base + i] = block[start + i] as number;
    this.#lengths[slot] = length;
    this.#tableStates[slot] = tableState;
    this.#lists[slot] = list;
    this.#lastUsed = slot;
  }
}

// Compares from the end, because fields that differ between the blocks of one client (a path, a trace id) follow the
// common ones.
function equals(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let i = length - 1; i >= 0; i--) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}
