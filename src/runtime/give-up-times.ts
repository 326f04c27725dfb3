/** Something that is given up at a time. */
export interface GivenUp {
  /** Infinity: never. */
  readonly giveUpMicros: number;
  /** Where {@link GiveUpTimes} holds it; -1 while it does not. Kept by it. */
  place: number;
}

/** Times, the soonest first: a binary heap whose entries know their place. */
export class GiveUpTimes<Entry extends GivenUp> {
  readonly #heap: Entry[] = [];

  get first(): Entry | undefined {
    return this.#heap[0];
  }

  add(entry: Entry): void {
    if (entry.giveUpMicros === Number.POSITIVE_INFINITY) return;
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
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above] as Entry;
      if (parent.giveUpMicros <= entry.giveUpMicros) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(entry, place);
  }

  #sink(entry: Entry, from: number): void {
    const heap = this.#heap;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      const left = heap[below];
      const right = heap[below + 1];
      if (left === undefined) break;
      if (right !== undefined && right.giveUpMicros < left.giveUpMicros) below++;
      const child = heap[below] as Entry;
      if (child.giveUpMicros >= entry.giveUpMicros) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(entry, place);
  }

  #put(entry: Entry, place: number): void {
    this.#heap[place] = entry;
    entry.place = place;
  }
}
