import { expectState } from '../../invariant.js';
import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';
import { type Due, DueHeap } from '../../runtime/due-heap.js';
import { type Linked, LinkedList } from '../../runtime/linked-list.js';
import type { Part } from '../sharded/shard.js';
import { WHOLE } from './take-batch.js';

/** A request of more items is wide. */
export const NARROW_ITEMS = 16;
/** What a connection gets for a request that finds no room. */
export const NO_ROOM = 'the room for requests of many limits is taken';
/**
 * Items that a connection may send more with each of its turns: a request is sent once so many turns have gone by that
 * its items are paid for.
 */
export const QUANTUM_ITEMS = 64;

/** After so many items of connections that come first the others have a turn. */
const FRESH_ITEMS = 1000;

/** A request that waits for its turn, due at its deadline. Microseconds. */
export interface WideTake extends Due {
  readonly items: readonly TakeItem[];
  /** What they have in common. */
  readonly part: Part;
  /** See {@link BatchOptions}. */
  readonly takenOn: unknown;
  /** Since when it waits, on the clock of its deadline. Microseconds. */
  readonly sinceMicros: number;
  resolve(result: TakeResult): void;
}

interface Waiting extends WideTake, Linked<Waiting> {
  readonly line: Line;
}

/** What waits of one connection. */
class Line implements Linked<Line> {
  list: LinkedList<Line> | undefined;
  before: Line | undefined;
  after: Line | undefined;
  readonly connection: unknown;
  /** The oldest first. */
  readonly takes = new LinkedList<Waiting>();
  items = 0;
  /** Items that it may send. */
  credit = QUANTUM_ITEMS;

  constructor(connection: unknown) {
    this.connection = connection;
  }
}

/**
 * Requests of many items that wait until they are sent to Redis. Redis serves one call after the other, so that
 * whatever is sent is waited for by all who ask later: requests of few items are sent at once, wide ones a call at a
 * time, and connections take turns by items (deficit round robin: Shreedhar and Varghese, Efficient Fair Queueing,
 * 1995). One with nothing waiting comes before those that ask all the time (RFC 8290 section 4.2), which have their
 * turn after so many items nevertheless. None holds more than is left free.
 */
export class WideTakes {
  readonly #maxItems: number;
  readonly #lines = new Map<unknown, Line>();
  /** Lines that have not had a turn yet, which come first, and the others; each in the order of their turns. */
  readonly #fresh = new LinkedList<Line>();
  readonly #others = new LinkedList<Line>();
  /** Items of fresh lines that were sent since the others had a turn. */
  #freshItems = 0;
  /** What {@link peek} gave. */
  #peeked: Waiting | undefined;
  readonly #times = new DueHeap<Waiting>();
  #items = 0;

  /**
   * `maxItems`: most items that wait; of connections with nothing waiting up to twice as many, in requests of
   * {@link QUANTUM_ITEMS} at most.
   */
  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** Items that wait. */
  get items(): number {
    return this.#items;
  }

  /** Soonest deadline of those that wait, Infinity when none does. Microseconds. */
  get soonestDeadline(): number {
    return this.#times.first?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  /** Whether a request of so many items may wait. */
  hasRoomFor(items: number, connection: unknown): boolean {
    if (this.#items === 0) return true;
    const own = this.#lines.get(connection)?.items ?? 0;
    if (own + items <= this.#maxItems - this.#items) return true;
    return own === 0 && items <= QUANTUM_ITEMS && this.#items + items <= 2 * this.#maxItems;
  }

  /**
   * Adds a request; see {@link hasRoomFor}. The promise is settled once it is sent and answered, or by {@link expire}.
   */
  add(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection: unknown,
    sinceMicros: number,
    part: Part = WHOLE,
    takenOn?: unknown,
  ): Promise<TakeResult> {
    const line = this.#lineOf(connection);
    line.items += items.length;
    this.#items += items.length;
    return new Promise((resolve) => {
      const take: Waiting = {
        items,
        part,
        takenOn,
        sinceMicros,
        resolve,
        line,
        dueAt: deadlineMicros,
        heapIndex: -1,
        list: undefined,
        before: undefined,
        after: undefined,
      };
      line.takes.add(take);
      this.#times.add(take);
    });
  }

  /** The request whose turn it is. */
  peek(): WideTake | undefined {
    for (;;) {
      const line = this.#nextLine();
      this.#peeked = line?.takes.first;
      const head = this.#peeked;
      if (line === undefined || head === undefined || head.items.length <= line.credit) return head;
      line.credit += QUANTUM_ITEMS;
      this.#others.add(line);
    }
  }

  /** Removes the request that {@link peek} gave: it is sent. */
  shift(): void {
    const take = this.#peeked;
    if (take === undefined) throw new Error('nothing has its turn');
    const { line, items } = take;
    this.#freshItems = line.list === this.#fresh ? this.#freshItems + items.length : 0;
    line.credit -= items.length;
    this.#remove(take);
  }

  /** Gives `error` to those whose deadline is at `nowMicros` or before. */
  expire(nowMicros: number, error: StorageError): void {
    for (let take = this.#times.first; take !== undefined; take = this.#times.first) {
      if (take.dueAt > nowMicros) break;
      this.#remove(take);
      take.resolve(error);
    }
  }

  #nextLine(): Line | undefined {
    const fresh = this.#fresh.first;
    const other = this.#others.first;
    if (fresh === undefined || (other !== undefined && this.#freshItems >= FRESH_ITEMS)) return other;
    return fresh;
  }

  #lineOf(connection: unknown): Line {
    const known = this.#lines.get(connection);
    if (known !== undefined) return known;
    const line = new Line(connection);
    this.#lines.set(connection, line);
    this.#fresh.add(line);
    return line;
  }

  #remove(take: Waiting): void {
    const { line, items } = take;
    line.takes.delete(take);
    line.items -= items.length;
    this.#items -= items.length;
    expectState(line.items >= 0 && this.#items >= line.items, 'a connection waits with some of all items');
    this.#times.remove(take);
    this.#peeked = undefined;
    if (line.takes.size > 0) return;
    line.list?.delete(line);
    this.#lines.delete(line.connection);
  }
}
