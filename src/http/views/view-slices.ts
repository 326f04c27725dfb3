import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';

/**
 * Maximum duration of a slice of a view, in milliseconds. With a minor garbage collection, the turn still takes less
 * than a millisecond.
 */
export const SLICE_MS = 0.25;

/** The steps of rendering a view. A step takes much less than a millisecond. '' is a pause; a promise is awaited. */
export type ViewSteps<Piece, Result> = Generator<Piece | '' | Promise<unknown>, Result>;

export interface ViewSlicesOptions {
  /** Returns monotonic milliseconds. Default: performance.now. */
  readonly now?: () => number;
  readonly nextTurn?: NextTurn;
}

/**
 * Schedules work that must not delay decisions: views, and exported statistics. One turn of the event loop runs at most
 * one slice, for any number of views.
 */
export class ViewSlices {
  readonly #now: () => number;
  /** Work that waits for a slice. */
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
   * Runs `steps` to completion, and passes each piece to `take`. Rejects if a step throws or a promise that it yields
   * rejects.
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

/** Maps items with `make`, in slices. Yields '' for a pause. */
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
