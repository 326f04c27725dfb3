/** An entry of a {@link DueHeap}. It may be in at most one heap. */
export interface Due {
  /** Due time on the clock of the heap's owner. Infinity: never due. */
  readonly dueAt: number;
  /** Index in the heap, or -1 if the entry is not in it. Maintained by {@link DueHeap}. */
  heapIndex: number;
}

/**
 * A binary heap with the earliest due time first, whose entries know their index. Most entries are added in ascending
 * order and removed before they are due, which takes only a few array accesses.
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

  /** Removes `entry`. Does nothing if the entry is not in the heap. */
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
