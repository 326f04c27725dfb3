/** Keeps the first k items of an order. An item that is not among them costs one comparison. */
export class Most<Item> {
  readonly #most: number;
  readonly #order: (one: Item, other: Item) => number;
  readonly #first: Item[] = [];

  /** @param order returns a negative number if `one` comes before `other` */
  constructor(most: number, order: (one: Item, other: Item) => number) {
    this.#most = most;
    this.#order = order;
  }

  add(item: Item): void {
    const first = this.#first;
    if (first.length >= this.#most) {
      if (this.#most === 0 || this.#order(item, first[this.#most - 1] as Item) >= 0) return;
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
  get inOrder(): readonly Item[] {
    return this.#first;
  }
}
