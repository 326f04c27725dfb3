/** Resolves after one turn of the event loop, so that other pending work runs first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work to completion without yielding to the event loop. */
export function runToCompletion<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs work, and waits for a {@link turn} each time the work yields. */
export async function runInTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await turn();
  }
}

/** Waits for `promise`. After `ms` milliseconds, returns or throws what `onTimeout` does instead. */
export async function withTimeout<Result, Fallback>(
  ms: number,
  promise: Result | PromiseLike<Result>,
  onTimeout: () => Fallback,
): Promise<Result | Fallback> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([promise, over.then(onTimeout)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Schedules a callback for the next turn of the event loop. */
export type NextTurn = (callback: () => void) => void;

export interface TurnSchedulerOptions<Waiter> {
  /** Amount of work that may be done in one turn of the event loop, in any unit. */
  readonly budget: number;
  /** Called at the start of each turn. */
  onTurn?(): void;
  /**
   * Does the work of a waiter and spends its cost. A waiter that is not finished must wait again, and is then queued
   * behind the others.
   */
  serve?(waiter: Waiter): void;
  /** Default: setImmediate. */
  readonly nextTurn?: NextTurn | undefined;
}

/**
 * Shares the turns of the event loop: each turn has a work budget, and waiters are served in order of arrival, at most
 * once in a turn.
 */
export class TurnScheduler<Waiter> {
  /** Budget that remains in this turn. */
  remaining: number;
  readonly #budget: number;
  readonly #onTurn: (() => void) | undefined;
  readonly #serve: ((waiter: Waiter) => void) | undefined;
  readonly #nextTurn: NextTurn;
  /** A Set preserves the order of insertion. */
  readonly #waiting = new Set<Waiter>();
  #isScheduled = false;

  constructor({ budget, onTurn, serve, nextTurn = setImmediate }: TurnSchedulerOptions<Waiter>) {
    this.remaining = budget;
    this.#budget = budget;
    this.#onTurn = onTurn;
    this.#serve = serve;
    this.#nextTurn = nextTurn;
  }

  /** Number of waiters. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Spends `amount` of this turn's budget. The next turn starts with the full budget. */
  spend(amount: number): void {
    this.remaining -= amount;
    this.schedule();
  }

  /** Schedules another turn unless one is already scheduled. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#nextTurn(this.#turn);
  }

  wait(waiter: Waiter): void {
    this.#waiting.add(waiter);
    this.schedule();
  }

  /** Removes a waiter. Returns whether it was waiting. */
  cancel(waiter: Waiter): boolean {
    return this.#waiting.delete(waiter);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    this.remaining = this.#budget;
    this.#onTurn?.();
    // A waiter that is added again during this loop must not be served in the same turn, but iterating over a Set
    // includes elements that are added meanwhile.
    let rest = this.#waiting.size;
    for (const waiter of this.#waiting) {
      if (this.remaining <= 0 || rest-- === 0) break;
      this.#waiting.delete(waiter);
      this.#serve?.(waiter);
    }
    if (this.#waiting.size > 0) this.schedule();
  };
}
