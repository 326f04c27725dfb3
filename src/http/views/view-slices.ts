import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';

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
  readonly nextTurn?: NextTurn;
}

/**
 * Work that nobody's decision should wait for: views, and statistics that are sent. However many of them are made at
 * once, a turn of the event loop has one slice of one of them.
 */
export class ViewSlices {
  readonly #now: () => number;
  /** Whoever waits for a slice. */
  readonly #turns: TurnScheduler<() => void>;

  constructor({ now = () => performance.now(), nextTurn }: ViewSlicesOptions = {}) {
    this.#now = now;
    this.#turns = new TurnScheduler({
      budget: 1,
      serve: (goOn) => {
        this.#turns.spend(1);
        goOn();
      },
      nextTurn,
    });
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
      await new Promise<void>((goOn) => this.#turns.wait(goOn));
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
