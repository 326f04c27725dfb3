/** Who waits for a piece of work. */
export interface Waiter {
  /** Pieces of one connection wait for each other, and connections take turns: none gets more for asking more. */
  readonly connection: object;
  /** True once nobody wants the result any more. */
  cancelled(): boolean;
  /** When the work is given up, monotonic clock; Infinity for never. */
  readonly giveUpMicros: number;
}

/** Why a piece of work came to no result: nobody waits for it any more, or it was not done in time. */
export type NotDone = 'cancelled' | 'late';

interface Piece {
  readonly waiter: Waiter;
  readonly steps: Generator<void, unknown>;
  settle(result: unknown): void;
  fail(error: unknown): void;
}

export interface TurnQueueOptions {
  monotonicMicros(): number;
  /** Calls back once what waits in the event loop has had its turn; setImmediate when absent. */
  readonly nextTurn?: (callback: () => void) => void;
}

/**
 * Work that takes longer than other callers should wait, cut into steps: one step in a turn of the event loop, whoever asked for how much. Connections
 * take turns; on one connection the work that came first is done first.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions;
  readonly #nextTurn: (callback: () => void) => void;
  /** In the order of their turns: a Map keeps it. */
  readonly #pieces = new Map<object, Piece[]>();
  #scheduled = false;

  constructor(options: TurnQueueOptions) {
    this.#options = options;
    this.#nextTurn = options.nextTurn ?? ((callback) => setImmediate(callback));
  }

  /**
   * Runs `steps` to its end, a step in a turn, each of which should take well under two milliseconds. Rejects with what a step throws; work that is
   * given up is ended by `return()`.
   */
  run<Result>(steps: Generator<void, Result>, waiter: Waiter): Promise<Result | NotDone> {
    return new Promise<Result | NotDone>((resolve, reject) => {
      const piece: Piece = { waiter, steps, settle: (result) => resolve(result as Result), fail: reject };
      const others = this.#pieces.get(waiter.connection);
      if (others === undefined) this.#pieces.set(waiter.connection, [piece]);
      else others.push(piece);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#pieces.size === 0) return;
    this.#scheduled = true;
    this.#nextTurn(() => {
      this.#scheduled = false;
      this.#turn();
      this.#schedule();
    });
  }

  /** One step of the connection whose turn it is. */
  #turn(): void {
    for (const [connection, pieces] of this.#pieces) {
      this.#pieces.delete(connection);
      const done = this.#step(pieces);
      if (pieces.length > 0) this.#pieces.set(connection, pieces);
      if (done) return;
    }
  }

  /** False when nothing was left to do but to give work up. */
  #step(pieces: Piece[]): boolean {
    for (let piece = pieces[0]; piece !== undefined; piece = pieces[0]) {
      const notDone = this.#notDone(piece.waiter);
      if (notDone === undefined) {
        this.#advance(piece, pieces);
        return true;
      }
      pieces.shift();
      piece.steps.return(undefined);
      piece.settle(notDone);
    }
    return false;
  }

  #advance(piece: Piece, pieces: Piece[]): void {
    try {
      const step = piece.steps.next();
      if (step.done !== true) return;
      pieces.shift();
      piece.settle(step.value);
    } catch (error) {
      pieces.shift();
      piece.fail(error);
    }
  }

  #notDone(waiter: Waiter): NotDone | undefined {
    if (waiter.cancelled()) return 'cancelled';
    return waiter.giveUpMicros <= this.#options.monotonicMicros() ? 'late' : undefined;
  }
}
