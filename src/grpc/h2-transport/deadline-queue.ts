import { type Due, DueHeap } from '../../runtime/due-heap.js';
import type { TimerSource } from '../../runtime/timer-source.js';

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
