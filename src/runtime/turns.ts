/** Resolves when the event loop has had a turn: what waits there goes first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work to its end. */
export function runToCompletion<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs work, with a {@link turn} wherever it yields. */
export async function runInTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await turn();
  }
}

/** What `promise` comes to, or what `late` gives, or throws, after `ms`. */
export async function withTimeout<Result, Late>(
  ms: number,
  promise: Result | PromiseLike<Result>,
  onTimeout: () => Late,
): Promise<Result | Late> {
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

/** Calls back once what waits in the event loop has had its turn. */
export type NextTurn = (callback: () => void) => void;

export interface TurnSchedulerOptions<Waiter> {
  /** What may be done in one turn of the event loop, in any measure. */
  readonly budget: number;
  /** A turn begins. */
  onTurn?(): void;
  /**
   * Does what one waits for, and spends what that takes. One that is not done waits anew, behind those that are there.
   */
  serve?(waiter: Waiter): void;
  /** setImmediate when absent. */
  readonly nextTurn?: NextTurn | undefined;
}

/**
 * Shares the turns of the event loop: so much is done in one of them, and whoever waits is served in the order of
 * arrival, at most once in a turn.
 */
export class TurnScheduler<Waiter> {
  /** What may still be done in this turn. */
  remaining: number;
  readonly #budget: number;
  readonly #onTurn: (() => void) | undefined;
  readonly #serve: ((waiter: Waiter) => void) | undefined;
  readonly #nextTurn: NextTurn;
  /** A Set keeps the order. */
  readonly #waiting = new Set<Waiter>();
  #isScheduled = false;

  constructor({ budget, onTurn, serve, nextTurn = setImmediate }: TurnSchedulerOptions<Waiter>) {
    this.remaining = budget;
    this.#budget = budget;
    this.#onTurn = onTurn;
    this.#serve = serve;
    this.#nextTurn = nextTurn;
  }

  /** Those that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** So much was done. In the next turn it may be done again. */
  spend(amount: number): void {
    this.remaining -= amount;
    this.schedule();
  }

  /** Begins another turn, if none is to come. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#nextTurn(this.#turn);
  }

  wait(waiter: Waiter): void {
    this.#waiting.add(waiter);
    this.schedule();
  }

  /** Returns whether it waited. */
  cancel(waiter: Waiter): boolean {
    return this.#waiting.delete(waiter);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    this.remaining = this.#budget;
    this.#onTurn?.();
    // Those that wait anew stand behind the ones that were there, which a Set would go on to in the same loop.
    let rest = this.#waiting.size;
    for (const waiter of this.#waiting) {
      if (this.remaining <= 0 || rest-- === 0) break;
      this.#waiting.delete(waiter);
      this.#serve?.(waiter);
    }
    if (this.#waiting.size > 0) this.schedule();
  };
}
