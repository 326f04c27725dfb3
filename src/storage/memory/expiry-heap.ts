/** Stores the heap position of each slot. */
export interface HeapPositions {
  positionOf(slot: number): number;
  setPosition(slot: number, position: number): void;
}

const CHUNK_BITS = 13;
const CHUNK_MASK = (1 << CHUNK_BITS) - 1;
/**
 * Binary logarithm of the number of children. Four children share half a cache line, and the tree is half as high as
 * with two.
 */
const ARITY_BITS = 2;
const ARITY = 1 << ARITY_BITS;

/**
 * A min-heap of slot numbers in typed arrays. It needs no object per entry, and its chunks are never copied, so that
 * growth causes no pause. Each slot is in the heap at most once.
 */
export class ExpiryHeap {
  private readonly positions: HeapPositions;
  private readonly slots: Int32Array[] = [];
  private readonly keys: Float64Array[] = [];
  private count = 0;

  constructor(positions: HeapPositions) {
    this.positions = positions;
  }

  get size(): number {
    return this.count;
  }

  /** -1 if the heap is empty. */
  top(): number {
    return this.count === 0 ? -1 : this.slotAt(0);
  }

  /** The heap must not be empty. */
  topKey(): number {
    return this.keyAt(0);
  }

  keyOf(slot: number): number {
    return this.keyAt(this.positions.positionOf(slot));
  }

  /** Adds a slot that is not in the heap. */
  push(slot: number, key: number): void {
    const at = this.count++;
    if (at >> CHUNK_BITS === this.slots.length) {
      this.slots.push(new Int32Array(CHUNK_MASK + 1));
      this.keys.push(new Float64Array(CHUNK_MASK + 1));
    }
    this.up(at, slot, key);
  }

  /** Changes the key of a slot in the heap. */
  update(slot: number, key: number): void {
    const at = this.positions.positionOf(slot);
    if (key < this.keyAt(at)) this.up(at, slot, key);
    else this.down(at, slot, key);
  }

  /** Removes a slot from the heap. */
  remove(slot: number): void {
    const at = this.positions.positionOf(slot);
    const end = --this.count;
    if (at === end) return;
    const last = this.slotAt(end);
    const key = this.keyAt(end);
    if (at > 0 && key < this.keyAt((at - 1) >> ARITY_BITS)) this.up(at, last, key);
    else this.down(at, last, key);
  }

  /** Records that a slot of the heap has a new number. Its position can be read with the new number. */
  renumbered(slot: number): void {
    const at = this.positions.positionOf(slot);
    (this.slots[at >> CHUNK_BITS] as Int32Array)[at & CHUNK_MASK] = slot;
  }

  private up(start: number, slot: number, key: number): void {
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >> ARITY_BITS;
      const other = this.keyAt(parent);
      if (other <= key) break;
      this.place(at, this.slotAt(parent), other);
      at = parent;
    }
    this.place(at, slot, key);
  }

  private down(start: number, slot: number, key: number): void {
    const { count } = this;
    let at = start;
    for (;;) {
      const first = (at << ARITY_BITS) + 1;
      if (first >= count) break;
      const end = Math.min(first + ARITY, count);
      let child = first;
      let minKey = this.keyAt(first);
      for (let i = first + 1; i < end; i++) {
        const other = this.keyAt(i);
        if (other < minKey) {
          minKey = other;
          child = i;
        }
      }
      if (minKey >= key) break;
      this.place(at, this.slotAt(child), minKey);
      at = child;
    }
    this.place(at, slot, key);
  }

  private place(at: number, slot: number, key: number): void {
    (this.slots[at >> CHUNK_BITS] as Int32Array)[at & CHUNK_MASK] = slot;
    (this.keys[at >> CHUNK_BITS] as Float64Array)[at & CHUNK_MASK] = key;
    this.positions.setPosition(slot, at);
  }

  private slotAt(at: number): number {
    return (this.slots[at >> CHUNK_BITS] as Int32Array)[at & CHUNK_MASK] as number;
  }

  private keyAt(at: number): number {
    return (this.keys[at >> CHUNK_BITS] as Float64Array)[at & CHUNK_MASK] as number;
  }
}
