import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';
import { type GivenUp, GiveUpTimes } from '../../runtime/give-up-times.js';
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

/** A request that waits for its turn. */
export interface WideTake extends GivenUp {
  readonly items: readonly TakeItem[];
  /** What they have in common. */
  readonly part: Part;
  /** See {@link BatchOptions}. */
  readonly takenOn: unknown;
  /** Since when it waits, on the clock of its deadline. Microseconds. */
  readonly sinceMicros: number;
  resolve(result: TakeResult): void;
}

interface Waiting extends WideTake {
  readonly line: Line;
  before: Waiting | undefined;
  after: Waiting | undefined;
}

/** What waits of one connection, the oldest first. */
interface Line {
  readonly connection: unknown;
  /** Where it stands, and its neighbours there. */
  turns: Turns;
  previous: Line | undefined;
  next: Line | undefined;
  first: Waiting | undefined;
  last: Waiting | undefined;
  items: number;
  /** Items that it may send. */
  credit: number;
}

/**
 * Lines in the order of their turns. A Map, whose first entry is found behind all that were deleted, would take longer
 * the more there are.
 */
class Turns {
  first: Line | undefined;
  #last: Line | undefined;

  append(line: Line): void {
    line.turns = this;
    line.previous = this.#last;
    line.next = undefined;
    if (this.#last === undefined) this.first = line;
    else this.#last.next = line;
    this.#last = line;
  }

  remove({ previous, next }: Line): void {
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
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
  /** Lines that have not had a turn yet, which come first, and the others. */
  readonly #fresh = new Turns();
  readonly #others = new Turns();
  /** Items of fresh lines that were sent since the others had a turn. */
  #freshItems = 0;
  /** What {@link peek} gave. */
  #peeked: Waiting | undefined;
  readonly #times = new GiveUpTimes<Waiting>();
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
    return this.#times.first?.giveUpMicros ?? Number.POSITIVE_INFINITY;
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
        giveUpMicros: deadlineMicros,
        place: -1,
        before: line.last,
        after: undefined,
      };
      if (line.last === undefined) line.first = take;
      else line.last.after = take;
      line.last = take;
      this.#times.add(take);
    });
  }

  /** The request whose turn it is. */
  peek(): WideTake | undefined {
    for (;;) {
      const line = this.#nextLine();
      this.#peeked = line?.first;
      const head = this.#peeked;
      if (line === undefined || head === undefined || head.items.length <= line.credit) return head;
      line.credit += QUANTUM_ITEMS;
      line.turns.remove(line);
      this.#others.append(line);
    }
  }

  /** Removes the request that {@link peek} gave: it is sent. */
  shift(): void {
    const take = this.#peeked;
    if (take === undefined) throw new Error('nothing has its turn');
    const { line, items } = take;
    this.#freshItems = line.turns === this.#fresh ? this.#freshItems + items.length : 0;
    line.credit -= items.length;
    this.#remove(take);
  }

  /** Gives `error` to those whose deadline is at `nowMicros` or before. Returns to how many. */
  expire(nowMicros: number, error: StorageError): number {
    let expired = 0;
    for (let take = this.#times.first; take !== undefined; take = this.#times.first) {
      if (take.giveUpMicros > nowMicros) break;
      this.#remove(take);
      take.resolve(error);
      expired++;
    }
    return expired;
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
    const line: Line = {
      connection,
      turns: this.#fresh,
      previous: undefined,
      next: undefined,
      first: undefined,
      last: undefined,
      items: 0,
      credit: QUANTUM_ITEMS,
    };
    this.#lines.set(connection, line);
    this.#fresh.append(line);
    return line;
  }

  #remove(take: Waiting): void {
    const { line, before, after, items } = take;
    if (before === undefined) line.first = after;
    else before.after = after;
    if (after === undefined) line.last = before;
    else after.before = before;
    line.items -= items.length;
    this.#items -= items.length;
    this.#times.remove(take);
    this.#peeked = undefined;
    if (line.first !== undefined) return;
    line.turns.remove(line);
    this.#lines.delete(line.connection);
  }
}
