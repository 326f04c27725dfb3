/** Resolves when the event loop has had a turn: what waits there goes first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work to its end. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs work, with a {@link turn} wherever it yields. */
export async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await turn();
  }
}

/** What `promise` comes to, or what `late` gives, or throws, after `ms`. */
export async function within<Result, Late>(
  ms: number,
  promise: Result | PromiseLike<Result>,
  late: () => Late,
): Promise<Result | Late> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([promise, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Calls back once what waits in the event loop has had its turn. */
export type NextTurn = (callback: () => void) => void;

export interface TurnsOptions<Waiter> {
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
export class Turns<Waiter> {
  /** What may still be done in this turn. */
  left: number;
  readonly #budget: number;
  readonly #onTurn: (() => void) | undefined;
  readonly #serve: ((waiter: Waiter) => void) | undefined;
  readonly #nextTurn: NextTurn;
  /** A Set keeps the order. */
  readonly #waiting = new Set<Waiter>();
  #isAsked = false;

  constructor({ budget, onTurn, serve, nextTurn = setImmediate }: TurnsOptions<Waiter>) {
    this.left = budget;
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
    this.left -= amount;
    this.ask();
  }

  /** Begins another turn, if none is to come. */
  ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.#nextTurn(this.#turn);
  }

  wait(waiter: Waiter): void {
    this.#waiting.add(waiter);
    this.ask();
  }

  /** Returns whether it waited. */
  forget(waiter: Waiter): boolean {
    return this.#waiting.delete(waiter);
  }

  readonly #turn = (): void => {
    this.#isAsked = false;
    this.left = this.#budget;
    this.#onTurn?.();
    // Those that wait anew stand behind the ones that were there, which a Set would go on to in the same loop.
    let rest = this.#waiting.size;
    for (const waiter of this.#waiting) {
      if (this.left <= 0 || rest-- === 0) break;
      this.#waiting.delete(waiter);
      this.#serve?.(waiter);
    }
    if (this.#waiting.size > 0) this.ask();
  };
}
