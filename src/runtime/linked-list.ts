/** What may be in a {@link LinkedList}: in one at most. */
export interface Linked<T extends Linked<T>> {
  list: LinkedList<T> | undefined;
  before: T | undefined;
  after: T | undefined;
}

/**
 * Members in the order in which they were added.
 *
 * For many that come and go, where a Set costs too much: the tables that a Set goes through refer to each other and to
 * what was in them, so that a collection of young objects finds alive what is long gone, and copies it. That was a
 * third of the time that calls to Redis took.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The one that was added first. */
  get first(): T | undefined {
    return this.#first;
  }

  has(one: T): boolean {
    return one.list === this;
  }

  /** Adds one at the end, and takes it out of the list that it was in. */
  add(one: T): void {
    one.list?.delete(one);
    const last = this.#last;
    one.list = this;
    one.before = last;
    if (last === undefined) this.#first = one;
    else last.after = one;
    this.#last = one;
    this.#size++;
  }

  /** Returns whether it was there. */
  delete(one: T): boolean {
    if (one.list !== this) return false;
    const { before, after } = one;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // What is gone keeps nothing else alive.
    one.list = undefined;
    one.before = undefined;
    one.after = undefined;
    this.#size--;
    return true;
  }

  /** Those that are there now; what leaves meanwhile is left out. */
  *[Symbol.iterator](): Generator<T> {
    const all: T[] = [];
    for (let one = this.#first; one !== undefined; one = one.after) all.push(one);
    for (const one of all) if (one.list === this) yield one;
  }
}
