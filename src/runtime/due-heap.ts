/** An entry of a {@link DueHeap}. It is in one heap at most. */
export interface Due {
  /** When, on the clock of whoever keeps the heap; Infinity: never. */
  readonly dueAt: number;
  /** Where {@link DueHeap} holds it; -1 while it does not. Kept by it. */
  place: number;
}

/**
 * What is due, the soonest first: a binary heap whose entries know their place. Times mostly come in rising order and
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
    const { place } = entry;
    if (place < 0) return;
    entry.place = -1;
    const last = this.#heap.pop() as Entry;
    if (last === entry) return;
    this.#rise(last, place);
    this.#sink(last, last.place);
  }

  #rise(entry: Entry, from: number): void {
    const heap = this.#heap;
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = heap[above] as Entry;
      if (parent.dueAt <= entry.dueAt) break;
      heap[place] = parent;
      parent.place = place;
      place = above;
    }
    heap[place] = entry;
    entry.place = place;
  }

  #sink(entry: Entry, from: number): void {
    const heap = this.#heap;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      const right = below + 1;
      if (right < heap.length && (heap[right] as Entry).dueAt < (heap[below] as Entry).dueAt) below = right;
      const child = heap[below] as Entry;
      if (child.dueAt >= entry.dueAt) break;
      heap[place] = child;
      child.place = place;
      place = below;
    }
    heap[place] = entry;
    entry.place = place;
  }
}
