import type { StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';

/** A request of more items is wide. */
export const NARROW_ITEMS = 8;
/** What a connection gets for a request that finds no room. */
export const NO_ROOM = 'the room for requests of many limits is taken';
/** Items that a connection may send more with each of its turns: a request is sent once so many turns have gone by that its items are paid for. */
const QUANTUM_ITEMS = 64;

/** A request that waits for its turn. */
export interface WideTake {
  readonly items: readonly TakeItem[];
  /** On the clock of deadlines, microseconds. */
  readonly deadlineMicros: number;
  /** Since when it waits, on the same clock. */
  readonly sinceMicros: number;
  resolve(result: TakeResult): void;
}

/** What waits of one connection, the oldest first. */
interface Line {
  readonly connection: unknown;
  /** The one whose turn follows. */
  next: Line | undefined;
  takes: WideTake[];
  items: number;
  /** Items that it may send. */
  credit: number;
}

/**
 * Requests of many items that wait until they are sent to Redis. Redis serves one call after the other, so that whatever is sent is waited for by all who ask
 * later: requests of few items are sent at once, wide ones a call at a time, and connections take turns by items (deficit round robin: Shreedhar and
 * Varghese, Efficient Fair Queueing, 1995). A connection holds no more than is left free.
 */
export class WideTakes {
  /** Of those that wait, Infinity when none does; it may be one that is gone. */
  soonestDeadline = Number.POSITIVE_INFINITY;
  readonly #maxItems: number;
  readonly #lines = new Map<unknown, Line>();
  /** In the order of their turns. A Map, whose first entry is found behind all that were deleted, would take longer the more lines there are. */
  #first: Line | undefined;
  #last: Line | undefined;
  #items = 0;

  /** `maxItems`: most items that wait; a connection with nothing waiting may have one request more, up to twice as many in all. */
  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** Items that wait. */
  get items(): number {
    return this.#items;
  }

  /** Whether a request of so many items may wait. */
  hasRoomFor(items: number, connection: unknown): boolean {
    if (this.#items === 0) return true;
    const own = this.#lines.get(connection)?.items;
    if (own === undefined) return this.#items + items <= 2 * this.#maxItems;
    return own + items <= this.#maxItems - this.#items;
  }

  /** Adds a request; see {@link hasRoomFor}. The promise is settled once it is sent and answered, or by {@link expire}. */
  add(
    items: readonly TakeItem[],
    deadlineMicros: number,
    connection: unknown,
    sinceMicros: number,
  ): Promise<TakeResult> {
    let line = this.#lines.get(connection);
    if (line === undefined) {
      line = { connection, next: undefined, takes: [], items: 0, credit: 0 };
      this.#lines.set(connection, line);
      this.#append(line);
    }
    const { takes } = line;
    line.items += items.length;
    this.#items += items.length;
    this.soonestDeadline = Math.min(this.soonestDeadline, deadlineMicros);
    return new Promise((resolve) => {
      takes.push({ items, deadlineMicros, sinceMicros, resolve });
    });
  }

  /** The request whose turn it is. */
  peek(): WideTake | undefined {
    for (;;) {
      const line = this.#first;
      if (line === undefined) return undefined;
      const head = line.takes[0] as WideTake;
      if (head.items.length <= line.credit) return head;
      line.credit += QUANTUM_ITEMS;
      if (line.next === undefined) continue;
      this.#first = line.next;
      this.#append(line);
    }
  }

  /** Removes the request that {@link peek} gave: it is sent. */
  shift(): void {
    const line = this.#first as Line;
    const count = (line.takes.shift() as WideTake).items.length;
    line.items -= count;
    line.credit -= count;
    this.#items -= count;
    if (line.takes.length > 0) return;
    this.#lines.delete(line.connection);
    this.#first = line.next;
    if (this.#first === undefined) this.#last = undefined;
  }

  #append(line: Line): void {
    line.next = undefined;
    if (this.#last === undefined) this.#first = line;
    else this.#last.next = line;
    this.#last = line;
  }

  /** Gives the error that `errorOf` finds to those whose deadline is at `nowMicros` or before. Returns how many. */
  expire(nowMicros: number, errorOf: (take: WideTake) => StorageError): number {
    let expired = 0;
    this.soonestDeadline = Number.POSITIVE_INFINITY;
    let line = this.#first;
    this.#first = undefined;
    this.#last = undefined;
    while (line !== undefined) {
      const { next, connection, takes } = line;
      const kept: WideTake[] = [];
      for (const take of takes) {
        if (take.deadlineMicros > nowMicros) {
          kept.push(take);
          this.soonestDeadline = Math.min(this.soonestDeadline, take.deadlineMicros);
          continue;
        }
        expired++;
        line.items -= take.items.length;
        this.#items -= take.items.length;
        take.resolve(errorOf(take));
      }
      line.takes = kept;
      if (kept.length === 0) this.#lines.delete(connection);
      else this.#append(line);
      line = next;
    }
    return expired;
  }
}
