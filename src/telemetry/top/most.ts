/** Items that are put in order between two pauses. */
const STRETCH = 64;

/** The first few of many, by an order: a heap with the last of them on top, so that each of the many costs little. */
export class Most<Item> {
  readonly #most: number;
  readonly #order: (one: Item, other: Item) => number;
  readonly #heap: Item[] = [];

  /** @param order negative where `one` comes before `other` */
  constructor(most: number, order: (one: Item, other: Item) => number) {
    this.#most = most;
    this.#order = order;
  }

  add(item: Item): void {
    const heap = this.#heap;
    if (heap.length < this.#most) {
      heap.push(item);
      this.#rise(heap.length - 1);
    } else if (this.#most > 0 && this.#order(item, heap[0] as Item) < 0) {
      heap[0] = item;
      this.#sink();
    }
  }

  /** The first of those that were added, in order; '' is a pause. Nothing is left afterwards. */
  *inOrder(): Generator<'', readonly Item[]> {
    const heap = this.#heap;
    const items: Item[] = [];
    while (heap.length > 0) {
      items.push(heap[0] as Item);
      const last = heap.pop() as Item;
      if (heap.length > 0) {
        heap[0] = last;
        this.#sink();
      }
      if (items.length % STRETCH === 0) yield '';
    }
    return items.reverse();
  }

  #rise(from: number): void {
    for (let at = from; at > 0; ) {
      const above = (at - 1) >> 1;
      if (!this.#swapped(above, at)) return;
      at = above;
    }
  }

  #sink(): void {
    const { length } = this.#heap;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      if (left >= length) return;
      const right = left + 1;
      const later = right < length && this.#isLater(right, left) ? right : left;
      if (!this.#swapped(at, later)) return;
      at = later;
    }
  }

  #isLater(at: number, than: number): boolean {
    return this.#order(this.#heap[at] as Item, this.#heap[than] as Item) > 0;
  }

  /** Whether the one below belongs above: they are exchanged then. */
  #swapped(above: number, below: number): boolean {
    if (!this.#isLater(below, above)) return false;
    const heap = this.#heap;
    const held = heap[above] as Item;
    heap[above] = heap[below] as Item;
    heap[below] = held;
    return true;
  }
}
