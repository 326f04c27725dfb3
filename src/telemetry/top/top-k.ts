/** Keeps the first k items of an order. An item that is not among them costs one comparison. */
export class TopK<Item> {
  readonly #k: number;
  readonly #order: (one: Item, other: Item) => number;
  readonly #first: Item[] = [];

  /** @param order returns a negative number if `one` comes before `other` */
  constructor(k: number, order: (one: Item, other: Item) => number) {
    this.#k = k;
    this.#order = order;
  }

  add(item: Item): void {
    const first = this.#first;
    if (first.length >= this.#k) {
      if (this.#k === 0 || this.#order(item, first[this.#k - 1] as Item) >= 0) return;
      first.pop();
    }
    let low = 0;
    let high = first.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#order(item, first[middle] as Item) < 0) high = middle;
      else low = middle + 1;
    }
    first.splice(low, 0, item);
  }

  /** Returns the first k of the added items, in order. */
  get sorted(): readonly Item[] {
    return this.#first;
  }
}
