/**
 * So long, milliseconds, may a view be worked on before others have their turn: with a collection of young garbage in
 * it the turn stays within a millisecond.
 */
export const SLICE_MS = 0.25;

/** Work on a view: a step takes well below a millisecond. '' is a pause; a promise is waited for. */
export type ViewSteps<Piece, Result> = Generator<Piece | '' | Promise<unknown>, Result>;

export interface ViewSlicesOptions {
  /** Monotonic, milliseconds; performance.now when absent. */
  readonly now?: () => number;
  /** Calls back once what waits in the event loop has had its turn; setImmediate when absent. */
  readonly nextTurn?: (callback: () => void) => void;
}

/**
 * Work that nobody's decision should wait for: views, and statistics that are sent. However many of them are made at
 * once, a turn of the event loop has one slice of one of them.
 */
export class ViewSlices {
  readonly #now: () => number;
  readonly #nextTurn: (callback: () => void) => void;
  /** Whoever waits for a slice, in the order in which they came. */
  readonly #waiting: (() => void)[] = [];

  constructor(options: ViewSlicesOptions = {}) {
    this.#now = options.now ?? (() => performance.now());
    this.#nextTurn = options.nextTurn ?? ((callback) => setImmediate(callback));
  }

  /**
   * Runs `steps` to their end; `take` gets each piece. Rejects with what a step throws, or a promise of its rejects
   * with.
   */
  async run<Piece, Result>(
    steps: ViewSteps<Piece, Result>,
    take: (piece: Piece) => void = () => {},
  ): Promise<Result> {
    for (;;) {
      await this.#turn();
      const until = this.#now() + SLICE_MS;
      do {
        const step = steps.next();
        if (step.done === true) return step.value;
        const piece = step.value;
        if (piece instanceof Promise) {
          await piece;
          break;
        }
        if (piece !== '') take(piece);
      } while (this.#now() < until);
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#nextTurn(() => this.#giveTurn());
    });
  }

  /** What waits comes back here by itself, so the list is short: one entry for each view. */
  #giveTurn(): void {
    const next = this.#waiting.shift();
    if (this.#waiting.length > 0) this.#nextTurn(() => this.#giveTurn());
    next?.();
  }
}

/** What `make` makes of each of some items, in slices: '' for a pause. */
export function* mapped<Item, Made>(
  items: readonly Item[],
  make: (item: Item, index: number) => Made,
): Generator<'', readonly Made[]> {
  const made: Made[] = [];
  for (const [index, item] of items.entries()) {
    made.push(make(item, index));
    yield '';
  }
  return made;
}
