/** An entry of a {@link DueHeap}. It is in one heap at most. */
export interface Due {
  /** When, on the clock of whoever keeps the heap; Infinity: never. */
  readonly dueAt: number;
  /** Where {@link DueHeap} holds it; -1 while it does not. Kept by it. */
  heapIndex: number;
}

/**
 * What is due, the soonest first: a binary heap whose entries know their index. Times mostly come in rising order and
 * go before they are due, and then an entry costs no more than a few array accesses.
 */
export class DueHeap<Entry extends Due> {
  readonly #heap: Entry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): Entry | undefined {
    return this.#heap[0];
  }

  add(entry: Entry): void {
    if (entry.dueAt === Number.POSITIVE_INFINITY) return;
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
  }

  /** Takes `entry` out; does nothing when it is not in. */
  remove(entry: Entry): void {
    const { heapIndex } = entry;
    if (heapIndex < 0) return;
    entry.heapIndex = -1;
    const last = this.#heap.pop() as Entry;
    if (last === entry) return;
    this.#rise(last, heapIndex);
    this.#sink(last, last.heapIndex);
  }

  #rise(entry: Entry, from: number): void {
    const heap = this.#heap;
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above] as Entry;
      if (parent.dueAt <= entry.dueAt) break;
      heap[index] = parent;
      parent.heapIndex = index;
      index = above;
    }
    heap[index] = entry;
    entry.heapIndex = index;
  }

  #sink(entry: Entry, from: number): void {
    const heap = this.#heap;
    let index = from;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      const right = below + 1;
      if (right < heap.length && (heap[right] as Entry).dueAt < (heap[below] as Entry).dueAt) below = right;
      const child = heap[below] as Entry;
      if (child.dueAt >= entry.dueAt) break;
      heap[index] = child;
      child.heapIndex = index;
      index = below;
    }
    heap[index] = entry;
    entry.heapIndex = index;
  }
}
