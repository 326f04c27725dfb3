import { type Due, DueHeap } from '../../runtime/due-heap.js';

/** Something that ends at a time. */
export interface Expiring extends Due {
  /** On the clock of {@link TimerSource.nowMs}. Kept by the queue. */
  dueAt: number;
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
const EXPIRED_PER_TURN = 100;

/** Longest delay of a Node timer. Milliseconds. */
const MAX_DELAY_MS = 2_147_483_647;

/**
 * The deadlines of all calls of a server, with one timer for the soonest. Of many that are due at once, some expire in
 * each turn of the event loop: callers choose their deadlines, and may choose the same one for all the calls they can
 * have open.
 */
export class DeadlineQueue {
  readonly #timers: TimerSource;
  readonly #heap = new DueHeap<Expiring>();
  #timer: unknown;
  /** When the timer runs; Infinity without one. It may be too early: entries go without touching it. */
  #timerMs = Number.POSITIVE_INFINITY;

  constructor(timers: TimerSource) {
    this.#timers = timers;
  }

  get size(): number {
    return this.#heap.size;
  }

  /** `entry` expires `delayMs` from now. */
  add(entry: Expiring, delayMs: number): void {
    entry.dueAt = this.#timers.nowMs() + delayMs;
    this.#heap.add(entry);
    if (entry.dueAt < this.#timerMs) this.#arm(entry.dueAt, delayMs);
  }

  /** Takes `entry` out; does nothing when it is not in. */
  remove(entry: Expiring): void {
    this.#heap.remove(entry);
  }

  readonly #run = (): void => {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const now = this.#timers.nowMs();
    let first = this.#heap.first;
    for (let count = 0; first !== undefined && first.dueAt <= now; count++) {
      if (count === EXPIRED_PER_TURN) {
        // What expired may have added entries. Those need no timer until then, as this looks for them.
        if (this.#timerMs !== Number.POSITIVE_INFINITY) this.#timers.clear(this.#timer);
        this.#timerMs = Number.NEGATIVE_INFINITY;
        this.#timers.nextTurn(this.#run);
        return;
      }
      this.remove(first);
      first.expire();
      first = this.#heap.first;
    }
    if (first !== undefined && first.dueAt < this.#timerMs) {
      this.#arm(first.dueAt, first.dueAt - now);
    }
  };

  #arm(atMs: number, delayMs: number): void {
    if (this.#timerMs !== Number.POSITIVE_INFINITY) this.#timers.clear(this.#timer);
    this.#timerMs = atMs;
    this.#timer = this.#timers.set(this.#run, Math.min(Math.max(Math.ceil(delayMs), 1), MAX_DELAY_MS));
  }
}
