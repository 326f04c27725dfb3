import type { TimerSource } from '../../runtime/timers.js';

/** An entry that expires at a given time. */
export interface Expiring extends Due {
  /** Expiry time on the clock of {@link TimerSource.nowMs}. Maintained by the queue. */
  dueAt: number;
  /** Called when the entry expires. The queue has removed it before. */
  expire(): void;
}

/**
 * Maximum number of entries that expire in one turn of the event loop. Answering all of them takes less than a
 * millisecond.
 */
const EXPIRED_PER_TURN = 100;

/** Maximum delay of a Node.js timer, in milliseconds. */
const MAX_DELAY_MS = 2_147_483_647;

/**
 * Time by which entries expire later than asked. Handlers answer before the deadline of a call, with timers of their
 * own, which have a resolution of 1 ms.
 */
const SLACK_MS = 1;

/**
 * The deadlines of all calls of a server, with one timer for the earliest. If many entries are due at once, only some
 * expire in each turn of the event loop, because callers may choose the same deadline for all their calls.
 */
export class DeadlineQueue {
  readonly #timers: TimerSource;
  readonly #heap = new DueHeap<Expiring>();
  #timer: unknown;
  /**
   * Time at which the timer fires, or Infinity without a timer. May be too early, because removing an entry does not
   * change the timer.
   */
  #timerMs = Number.POSITIVE_INFINITY;
  /** Time at which the timer fired last. */
  #firedMs = 0;

  constructor(timers: TimerSource) {
    this.#timers = timers;
  }

  get size(): number {
    return this.#heap.size;
  }

  /** Adds an entry that expires in `delayMs` milliseconds, or slightly later. */
  add(entry: Expiring, delayMs: number): void {
    const waitMs = delayMs + SLACK_MS;
    entry.dueAt = this.#timers.nowMs() + waitMs;
    this.#heap.add(entry);
    if (entry.dueAt < this.#timerMs) this.#arm(entry.dueAt, waitMs);
  }

  /** Removes `entry`. Does nothing if the entry is not in the queue. */
  remove(entry: Expiring): void {
    this.#heap.remove(entry);
  }

  /**
   * Expires the entries that are due now, but only in the turn after the next. After a stall of the process, timers
   * fire in any order, and before the process reads what has arrived meanwhile. The next turn reads it, and answers
   * what the timers of handlers end, such as calls that wait for Redis.
   */
  readonly #fire = (): void => {
    this.#firedMs = this.#timers.nowMs();
    this.#timerMs = Number.NEGATIVE_INFINITY;
    this.#timers.nextTurn(this.#runLater);
  };

  readonly #runLater = (): void => {
    this.#timerMs = Number.NEGATIVE_INFINITY;
    this.#timers.nextTurn(this.#run);
  };

  readonly #run = (): void => {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const now = this.#firedMs;
    let first = this.#heap.first;
    for (let count = 0; first !== undefined && first.dueAt <= now; count++) {
      if (count === EXPIRED_PER_TURN) {
        // Expired entries may have added new ones, which need no timer before this point.
        if (this.#timerMs !== Number.POSITIVE_INFINITY) this.#timers.clear(this.#timer);
        this.#runLater();
        return;
      }
      this.remove(first);
      first.expire();
      first = this.#heap.first;
    }
    if (first !== undefined && first.dueAt < this.#timerMs) {
      this.#arm(first.dueAt, first.dueAt - this.#timers.nowMs());
    }
  };

  #arm(atMs: number, delayMs: number): void {
    if (this.#timerMs !== Number.POSITIVE_INFINITY) this.#timers.clear(this.#timer);
    this.#timerMs = atMs;
    this.#timer = this.#timers.set(this.#fire, Math.min(Math.max(Math.ceil(delayMs), 1), MAX_DELAY_MS));
  }
}

/** An entry of a {@link DueHeap}. It may be in at most one heap. */
interface Due {
  /** Due time on the clock of the heap's owner. Infinity: never due. */
  readonly dueAt: number;
  /** Index in the heap, or -1 if the entry is not in it. Maintained by {@link DueHeap}. */
  heapIndex: number;
}

/**
 * A binary heap with the earliest due time first, whose entries know their index. Most entries are added in ascending
 * order and removed before they are due, which takes only a few array accesses.
 */
class DueHeap<Entry extends Due> {
  readonly #heap: Entry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): Entry | undefined {
    return this.#heap[0];
  }

  add(entry: Entry): void {
    if (entry.dueAt === Number.POSITIVE_INFINITY) return;
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
  }

  /** Removes `entry`. Does nothing if the entry is not in the heap. */
  remove(entry: Entry): void {
    const { heapIndex } = entry;
    if (heapIndex < 0) return;
    entry.heapIndex = -1;
    const last = this.#heap.pop() as Entry;
    if (last === entry) return;
    this.#rise(last, heapIndex);
    this.#sink(last, last.heapIndex);
  }

  #rise(entry: Entry, from: number): void {
    const heap = this.#heap;
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above] as Entry;
      if (parent.dueAt <= entry.dueAt) break;
      heap[index] = parent;
      parent.heapIndex = index;
      index = above;
    }
    heap[index] = entry;
    entry.heapIndex = index;
  }

  #sink(entry: Entry, from: number): void {
    const heap = this.#heap;
    let index = from;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      const right = below + 1;
      if (right < heap.length && (heap[right] as Entry).dueAt < (heap[below] as Entry).dueAt) below = right;
      const child = heap[below] as Entry;
      if (child.dueAt >= entry.dueAt) break;
      heap[index] = child;
      child.heapIndex = index;
      index = below;
    }
    heap[index] = entry;
    entry.heapIndex = index;
  }
}
