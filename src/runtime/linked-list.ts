/** A member of a {@link LinkedList}. It may be in at most one list. */
export interface Linked<T extends Linked<T>> {
  list: LinkedList<T> | undefined;
  before: T | undefined;
  after: T | undefined;
}

/**
 * A doubly linked list of its members, in insertion order.
 *
 * For members that are added and removed very often, a Set costs too much. Its successive tables refer to each other
 * and to former members, so a minor garbage collection finds removed members alive and copies them. That took a third
 * of the time of calls to Redis.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The member that was added first. */
  get first(): T | undefined {
    return this.#first;
  }

  has(one: T): boolean {
    return one.list === this;
  }

  /** Appends a member, after removing it from the list that it was in. */
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

  /** Removes a member. Returns whether it was in this list. */
  delete(one: T): boolean {
    if (one.list !== this) return false;
    const { before, after } = one;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // A removed member must not keep other members alive.
    one.list = undefined;
    one.before = undefined;
    one.after = undefined;
    this.#size--;
    return true;
  }

  /** Iterates over the current members. Members that are removed during the iteration are skipped. */
  *[Symbol.iterator](): Generator<T> {
    const all: T[] = [];
    for (let one = this.#first; one !== undefined; one = one.after) all.push(one);
    for (const one of all) if (one.list === this) yield one;
  }
}
