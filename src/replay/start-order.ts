/** Something that happens at a time of the log. */
export interface Timed {
  readonly timeMicros: number;
  /** When the line about it was written; by default at its time. */
  readonly writtenMicros?: number;
}

interface Queued<Item> {
  readonly item: Item;
  readonly timeMicros: number;
  /** Order of arrival, which decides between equal times. */
  readonly order: number;
}

function isBefore(a: Queued<unknown>, b: Queued<unknown>): boolean {
  return a.timeMicros < b.timeMicros || (a.timeMicros === b.timeMicros && a.order < b.order);
}

/**
 * A queue by time, first in, first out for equal times. Items that arrive in order cost a few array accesses; others go
 * through a binary heap.
 */
export class TimeQueue<Item extends Timed> {
  #inOrder: Queued<Item>[] = [];
  #head = 0;
  readonly #heap: Queued<Item>[] = [];
  #orders = 0;

  get size(): number {
    return this.#inOrder.length - this.#head + this.#heap.length;
  }

  /** Time of the first item; Infinity if there is none. */
  get firstMicros(): number {
    const inOrder = this.#inOrder[this.#head]?.timeMicros ?? Number.POSITIVE_INFINITY;
    return Math.min(inOrder, this.#heap[0]?.timeMicros ?? Number.POSITIVE_INFINITY);
  }

  add(item: Item): void {
    const { timeMicros } = item;
    const queued = { item, timeMicros, order: this.#orders++ };
    const last = this.#inOrder.at(-1);
    if (last === undefined || last.timeMicros <= timeMicros) this.#inOrder.push(queued);
    else this.#push(queued);
  }

  /** Removes the first item. */
  take(): Item | undefined {
    const inOrder = this.#inOrder[this.#head];
    const first = this.#heap[0];
    if (first !== undefined && (inOrder === undefined || isBefore(first, inOrder)))
      return this.#pop(first).item;
    if (inOrder === undefined) return undefined;
    this.#head++;
    // The memory of removed items is freed once they are the larger part.
    if (this.#head > 1024 && this.#head * 2 > this.#inOrder.length) {
      this.#inOrder = this.#inOrder.slice(this.#head);
      this.#head = 0;
    }
    return inOrder.item;
  }

  #push(queued: Queued<Item>): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above] as Queued<Item>;
      if (isBefore(parent, queued)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = queued;
  }

  #pop(first: Queued<Item>): Queued<Item> {
    const heap = this.#heap;
    const last = heap.pop() as Queued<Item>;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, heap[below] as Queued<Item>)) below++;
      const child = heap[below] as Queued<Item>;
      if (isBefore(last, child)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}

/** Maximum duration of a request that is sorted by its start, although its line is written at its end. */
export const MAX_SORTED_MICROS = 600_000_000;

/** Maximum number of requests that wait to be sorted. With more, the window is shorter. */
const MAX_WAITING = 60_000;

/**
 * Sorts requests by their start within a window, because proxies write a line when a request ends. A request that comes
 * later than that is counted, and its time becomes that of the latest request that was passed on.
 */
export class StartOrder<Call extends Timed> {
  readonly #waiting = new TimeQueue<Call>();
  readonly #windowMicros: number;
  readonly #jumpMicros: number;
  /** Latest start, and latest time at which a line was written, by log. */
  readonly #latest = new Map<unknown, { start: number; written: number }>();
  #passedMicros = Number.NEGATIVE_INFINITY;
  /** Time until which no later line can precede a request within the window; undefined if a line was added. */
  #untilMicros: number | undefined;
  /** Number of requests that came too late to be sorted. */
  late = 0;

  /** `jumpMicros`: the difference from which on a line that was written before the previous ones counts as late. */
  constructor(windowMicros: number, jumpMicros = windowMicros) {
    this.#windowMicros = windowMicros;
    this.#jumpMicros = jumpMicros;
  }

  /** Announces a log before its first line is read: requests of other logs wait for those of this log. */
  open(log: unknown): void {
    this.#latest.set(log, { start: Number.NEGATIVE_INFINITY, written: Number.NEGATIVE_INFINITY });
    this.#untilMicros = undefined;
  }

  /** Ends a log, for whose requests no other log waits any longer. */
  end(log: unknown): void {
    this.#latest.delete(log);
    this.#untilMicros = undefined;
  }

  add(log: unknown, call: Call): void {
    const latest = this.#latest.get(log);
    const { timeMicros, writtenMicros = timeMicros } = call;
    this.#untilMicros = undefined;
    this.#waiting.add(call);
    if (latest === undefined) return;
    // A log is in the order of one of both times. If both go back, another log begins.
    const isJump =
      writtenMicros < latest.written - this.#jumpMicros && timeMicros < latest.start - this.#jumpMicros;
    if (timeMicros < this.#passedMicros || isJump) this.late++;
    latest.start = Math.max(latest.start, timeMicros);
    latest.written = Math.max(latest.written, writtenMicros);
  }

  /** Returns the open log that is furthest behind; undefined if all logs have ended. */
  furthestBehind(): unknown {
    let behind: unknown;
    let micros = Number.POSITIVE_INFINITY;
    for (const [log, { start }] of this.#latest) {
      if (start >= micros) continue;
      micros = start;
      behind = log;
    }
    return behind;
  }

  /** Returns the next request that no later line can precede within the window; undefined if there is none yet. */
  next(): Call | undefined {
    this.#untilMicros ??=
      Math.min(...[...this.#latest.values()].map(({ start }) => start)) - this.#windowMicros;
    if (this.#waiting.firstMicros > this.#untilMicros && this.#waiting.size <= MAX_WAITING) return undefined;
    const call = this.#waiting.take();
    if (call !== undefined && call.timeMicros > this.#passedMicros) this.#passedMicros = call.timeMicros;
    return call;
  }
}
