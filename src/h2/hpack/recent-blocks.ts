import type { HeaderList } from './header-list.js';

/** Number of cached blocks, so that a client may alternate between a few calls. A power of two. */
const SLOTS = 4;
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
    for (let i = 0; i < SLOTS; i++) {
      const slot = (this.#lastUsed + i) & (SLOTS - 1);
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
    this.#bytes ??= new Uint8Array(SLOTS * MAX_BLOCK_BYTES);
    const slot = (this.#lastUsed + SLOTS - 1) & (SLOTS - 1);
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
