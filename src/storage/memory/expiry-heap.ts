/**
 * A binary heap of slot numbers, soonest key first, kept in typed arrays: no object per entry. Slots are small integers
 * given out by the caller; each may be in the heap once.
 */
export class ExpiryHeap {
  private heap: Int32Array;
  /** Where a slot stands in `heap`, -1 when it does not. */
  private position: Int32Array;
  private keys: Float64Array;
  private count = 0;

  /** `capacity` is the number of slots, see {@link grow}. */
  constructor(capacity: number) {
    this.heap = new Int32Array(capacity);
    this.position = new Int32Array(capacity).fill(-1);
    this.keys = new Float64Array(capacity);
  }

  get size(): number {
    return this.count;
  }

  /** Makes room for slots below `capacity`. */
  grow(capacity: number): void {
    const { heap, position, keys } = this;
    this.heap = new Int32Array(capacity);
    this.heap.set(heap);
    this.position = new Int32Array(capacity).fill(-1);
    this.position.set(position);
    this.keys = new Float64Array(capacity);
    this.keys.set(keys);
  }

  /** The slot with the smallest key, -1 when empty. */
  top(): number {
    return this.count === 0 ? -1 : (this.heap[0] as number);
  }

  keyOf(slot: number): number {
    return this.keys[slot] as number;
  }

  /** Adds a slot that is not in the heap. */
  push(slot: number, key: number): void {
    this.keys[slot] = key;
    this.up(this.count++, slot);
  }

  /** Gives a slot of the heap another key. */
  update(slot: number, key: number): void {
    const at = this.position[slot] as number;
    const before = this.keys[slot] as number;
    this.keys[slot] = key;
    if (key < before) this.up(at, slot);
    else this.down(at, slot);
  }

  /** Takes a slot of the heap out. */
  remove(slot: number): void {
    const at = this.position[slot] as number;
    this.position[slot] = -1;
    const last = this.heap[--this.count] as number;
    if (last === slot) return;
    this.up(at, last);
    this.down(this.position[last] as number, last);
  }

  private up(start: number, slot: number): void {
    const { heap, position, keys } = this;
    const key = keys[slot] as number;
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = heap[parent] as number;
      if ((keys[other] as number) <= key) break;
      heap[at] = other;
      position[other] = at;
      at = parent;
    }
    heap[at] = slot;
    position[slot] = at;
  }

  private down(start: number, slot: number): void {
    const { heap, position, keys, count } = this;
    const key = keys[slot] as number;
    let at = start;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= count) break;
      const right = child + 1;
      if (
        right < count &&
        (keys[heap[right] as number] as number) < (keys[heap[child] as number] as number)
      ) {
        child = right;
      }
      const other = heap[child] as number;
      if ((keys[other] as number) >= key) break;
      heap[at] = other;
      position[other] = at;
      at = child;
    }
    heap[at] = slot;
    position[slot] = at;
  }
}
