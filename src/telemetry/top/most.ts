/** The first few of many, by an order: each of the many that is not among them costs a comparison. */
export class Most<Item> {
  readonly #most: number;
  readonly #order: (one: Item, other: Item) => number;
  readonly #first: Item[] = [];

  /** @param order negative where `one` comes before `other` */
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

  /** The first of those that were added, in order. */
  get inOrder(): readonly Item[] {
    return this.#first;
  }
}
