import type { HeaderList } from './header-list.js';

/** Blocks kept; a client that alternates between a few calls finds each of them. A power of two. */
const SLOTS = 4;
/** Longer blocks are not kept: with the table settled, those that repeat are far shorter. */
const MAX_BLOCK_BYTES = 256;

/** The last few blocks of a connection that the dynamic table was not moved by, with what they decoded to. */
export class RecentBlocks {
  // Nothing is allocated before the first block. Block `slot` lies in `bytes` from slot * MAX_BLOCK_BYTES on.
  #bytes: Uint8Array | undefined = undefined;
  readonly #lengths: number[] = [0, 0, 0, 0];
  readonly #tableStates: number[] = [-1, -1, -1, -1];
  readonly #lists: (HeaderList | undefined)[] = [undefined, undefined, undefined, undefined];
  #lastUsed = 0;

  /**
   * What the same bytes decoded to in the same `tableState`, a number that differs for each state of the dynamic table.
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

  /** Keeps a block in place of the one that {@link find} would look at last. */
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

// From the end: what differs between blocks of one client (a path, a trace id) stands behind the pseudo-header fields.
function equals(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let i = length - 1; i >= 0; i--) if (a[aStart + i] !== b[bStart + i]) return false;
  return true;
}
