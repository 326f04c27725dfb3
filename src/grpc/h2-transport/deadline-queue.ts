/** Something that ends at a time. It may stand in one queue at a time. */
export interface Expiring {
  /** When, on the clock of {@link TimerSource.nowMs}. Kept by the queue. */
  expiresMs: number;
  /** Where the queue holds it; -1 while it does not. Kept by the queue. */
  queueIndex: number;
  /** The time has come. The entry is out of the queue already. */
  expire(): void;
}

/** A monotonic clock and timers on it; replaced in tests. */
export interface TimerSource {
  /** Milliseconds since any fixed point. */
  nowMs(): number;
  set(callback: () => void, delayMs: number): unknown;
  clear(timer: unknown): void;
  /** Calls back once what waits in the event loop has had its turn. */
  nextTurn(callback: () => void): void;
}

export const SYSTEM_TIMERS: TimerSource = {
  nowMs: () => performance.now(),
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
  nextTurn: (callback) => setImmediate(callback),
};

/**
 * Entries that expire in one turn of the event loop: an answer to each takes less than a millisecond for all of them.
 */
const EXPIRED_IN_A_TURN = 100;

/** Longest delay of a Node timer. Milliseconds. */
const MAX_DELAY_MS = 2_147_483_647;

/**
 * The deadlines of all calls of a server, with one timer for the soonest: a binary heap whose entries know their place.
 * Deadlines mostly come in rising order and go before they are due, and then an entry costs no more than a few array
 * accesses. Of many that are due at once, some expire in each turn of the event loop: callers choose their deadlines,
 * and may choose the same one for all the calls they can have open.
 */
export class DeadlineQueue {
  readonly #timers: TimerSource;
  readonly #heap: Expiring[] = [];
  #timer: unknown;
  /** When the timer runs; Infinity without one. It may be too early: entries go without touching it. */
  #timerMs = Number.POSITIVE_INFINITY;

  constructor(timers: TimerSource) {
    this.#timers = timers;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** `entry` expires `delayMs` from now. */
  add(entry: Expiring, delayMs: number): void {
    entry.expiresMs = this.#timers.nowMs() + delayMs;
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
    if (entry.expiresMs < this.#timerMs) this.#arm(entry.expiresMs, delayMs);
  }

  /** Takes `entry` out; does nothing when it is not in. */
  remove(entry: Expiring): void {
    const index = entry.queueIndex;
    if (index < 0) return;
    entry.queueIndex = -1;
    const last = this.#heap.pop() as Expiring;
    if (last === entry) return;
    this.#rise(last, index);
    this.#sink(last, last.queueIndex);
  }

  readonly #run = (): void => {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const now = this.#timers.nowMs();
    let first = this.#heap[0];
    for (let count = 0; first !== undefined && first.expiresMs <= now; count++) {
      if (count === EXPIRED_IN_A_TURN) {
        // What expired may have added entries. Those need no timer until then, as this looks for them.
        if (this.#timerMs !== Number.POSITIVE_INFINITY) this.#timers.clear(this.#timer);
        this.#timerMs = Number.NEGATIVE_INFINITY;
        this.#timers.nextTurn(this.#run);
        return;
      }
      this.remove(first);
      first.expire();
      first = this.#heap[0];
    }
    if (first !== undefined && first.expiresMs < this.#timerMs) {
      this.#arm(first.expiresMs, first.expiresMs - now);
    }
  };

  #arm(atMs: number, delayMs: number): void {
    if (this.#timerMs !== Number.POSITIVE_INFINITY) this.#timers.clear(this.#timer);
    this.#timerMs = atMs;
    this.#timer = this.#timers.set(this.#run, Math.min(Math.max(Math.ceil(delayMs), 1), MAX_DELAY_MS));
  }

  #rise(entry: Expiring, from: number): void {
    const heap = this.#heap;
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above] as Expiring;
      if (parent.expiresMs <= entry.expiresMs) break;
      heap[index] = parent;
      parent.queueIndex = index;
      index = above;
    }
    heap[index] = entry;
    entry.queueIndex = index;
  }

  #sink(entry: Expiring, from: number): void {
    const heap = this.#heap;
    let index = from;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      const right = below + 1;
      if (right < heap.length && (heap[right] as Expiring).expiresMs < (heap[below] as Expiring).expiresMs) {
        below = right;
      }
      const child = heap[below] as Expiring;
      if (child.expiresMs >= entry.expiresMs) break;
      heap[index] = child;
      child.queueIndex = index;
      index = below;
    }
    heap[index] = entry;
    entry.queueIndex = index;
  }
}
