import { type Due, DueHeap } from '../runtime/due-heap.js';
import { type Linked, LinkedList } from '../runtime/linked-list.js';
import { type NextTurn, TurnScheduler } from '../runtime/turns.js';

/** Who waits for a piece of work. */
export interface Waiter {
  /** Pieces of one connection wait for each other, and connections take turns: none gets more for asking more. */
  readonly connection: unknown;
  /** True once nobody wants the result any more. */
  cancelled(): boolean;
  /** When the work is given up, monotonic clock; Infinity for never. */
  readonly giveUpMicros: number;
  /** The memory that waits with it, in bytes; nothing to speak of when absent. */
  readonly bytes?: number;
}

/**
 * Why a piece of work came to no result: nobody waits for it any more, it was not done in time, or too much waits
 * already.
 */
export type NotDone = 'cancelled' | 'late' | 'full';

export interface TurnQueueOptions {
  monotonicMicros(): number;
  readonly nextTurn?: NextTurn;
  /** Most pieces that wait; {@link MAX_PIECES} when absent. */
  readonly maxPieces?: number;
  /** Most bytes that wait with them; {@link MAX_BYTES} when absent. */
  readonly maxBytes?: number;
}

/** Pieces that may wait at once. */
export const MAX_PIECES = 10_000;
/** What may wait with them, in bytes. */
export const MAX_BYTES = 32 * 1024 * 1024;

/**
 * So many connections have a piece begun; others wait for one of them to end. What is begun takes more memory than what
 * waits.
 */
const BEGUN_AT_ONCE = 32;
/** So many pieces are given up in a turn. */
const GIVEN_UP_IN_A_TURN = 50;

/** A piece of work that waits, or has begun. */
class Piece implements Due, Linked<Piece> {
  readonly waiter: Waiter;
  readonly line: Line;
  readonly bytes: number;
  readonly dueAt: number;
  heapIndex = -1;
  list: LinkedList<Piece> | undefined;
  before: Piece | undefined;
  after: Piece | undefined;
  readonly #steps: Generator<void, unknown>;
  readonly #resolve: (result: unknown) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    steps: Generator<void, unknown>,
    waiter: Waiter,
    line: Line,
    resolve: (result: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.waiter = waiter;
    this.line = line;
    this.bytes = waiter.bytes ?? 0;
    this.dueAt = waiter.giveUpMicros;
    this.#steps = steps;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** One step; true when it was the last. */
  step(): boolean {
    try {
      const step = this.#steps.next();
      if (step.done !== true) return false;
      this.#resolve(step.value);
    } catch (error) {
      this.#reject(error);
    }
    return true;
  }

  giveUp(why: NotDone): void {
    this.#steps.return(undefined);
    this.#resolve(why);
  }
}

/** What one connection has waiting. */
class Line {
  readonly connection: unknown;
  /** First to last. */
  readonly pieces = new LinkedList<Piece>();
  bytes = 0;

  constructor(connection: unknown) {
    this.connection = connection;
  }
}

/**
 * Work that takes longer than other callers should wait, cut into steps: one step in a turn of the event loop, whoever
 * asked for how much. Connections take turns; on one connection the work that came first is done first. What is not
 * done in time is given up, and so is what comes while too much waits.
 */
export class TurnQueue {
  readonly #options: TurnQueueOptions;
  readonly #maxPieces: number;
  readonly #maxBytes: number;
  readonly #lines = new Map<unknown, Line>();
  /**
   * Connections whose first piece may have begun, in the order of their turns, and those that wait for a place among
   * them. While there is work there are turns, and each looks for what is late: no timer is needed.
   */
  readonly #begun: TurnScheduler<Line>;
  readonly #waiting = new Set<Line>();
  readonly #times = new DueHeap<Piece>();
  /** Pieces of this turn that nobody waited for any more. */
  #gone = 0;
  #pieces = 0;
  #bytes = 0;

  constructor(options: TurnQueueOptions) {
    this.#options = options;
    this.#maxPieces = options.maxPieces ?? MAX_PIECES;
    this.#maxBytes = options.maxBytes ?? MAX_BYTES;
    this.#begun = new TurnScheduler({
      budget: 1,
      onTurn: () => this.#giveUpLate(),
      serve: (line) => this.#serve(line),
      nextTurn: options.nextTurn,
    });
  }

  /** Pieces that wait or have begun. */
  get size(): number {
    return this.#pieces;
  }

  /** The memory that waits with them, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Connections that have a piece that waits or has begun. */
  get connections(): number {
    return this.#lines.size;
  }

  /**
   * Whether another piece of so many bytes may wait. A connection holds no more than is left free, so that one takes
   * half of the room at most, two a third each, and there is always some for a connection that has nothing waiting
   * (Choudhury and Hahne, Dynamic Queue Length Thresholds, 1998).
   */
  hasRoomFor(bytes: number, connection: unknown): boolean {
    const line = this.#lines.get(connection);
    const held = line?.bytes ?? 0;
    return (
      (line?.pieces.size ?? 0) < this.#maxPieces - this.#pieces &&
      held + bytes <= this.#maxBytes - this.#bytes
    );
  }

  /**
   * Runs `steps` to its end, a step in a turn, each of which should take well under two milliseconds. Rejects with what
   * a step throws; work that is given up is ended by `return()`.
   */
  run<Result>(steps: Generator<void, Result>, waiter: Waiter): Promise<Result | NotDone> {
    if (!this.hasRoomFor(waiter.bytes ?? 0, waiter.connection)) return Promise.resolve('full');
    return new Promise<Result | NotDone>((resolve, reject) => {
      const line = this.#lineOf(waiter.connection);
      this.#add(new Piece(steps, waiter, line, (result) => resolve(result as Result), reject));
    });
  }

  #giveUpLate(): void {
    this.#gone = 0;
    const now = this.#options.monotonicMicros();
    for (let count = 0; count < GIVEN_UP_IN_A_TURN; count++) {
      const piece = this.#times.first;
      if (piece === undefined || piece.dueAt > now) return;
      this.#remove(piece);
      piece.giveUp(piece.waiter.cancelled() ? 'cancelled' : 'late');
    }
  }

  /** One step of the connection whose turn it is. */
  #serve(line: Line): void {
    const piece = this.#wanted(line);
    // Nobody waits for anything of it, and it is gone.
    if (line.pieces.size === 0) return;
    this.#begun.spend(1);
    this.#begun.wait(line);
    // So many had to be given up that the next turn goes on.
    if (piece === undefined || !piece.step()) return;
    this.#remove(piece);
    this.#yieldPlace(line);
  }

  /** The first piece of a connection that somebody waits for. */
  #wanted(line: Line): Piece | undefined {
    for (;;) {
      const piece = line.pieces.first;
      if (piece === undefined || !piece.waiter.cancelled()) return piece;
      if (this.#gone >= GIVEN_UP_IN_A_TURN) return undefined;
      this.#gone++;
      this.#remove(piece);
      piece.giveUp('cancelled');
    }
  }

  /** A connection that had something done goes behind those that wait. */
  #yieldPlace(line: Line): void {
    if (this.#waiting.size === 0 || !this.#begun.cancel(line)) return;
    this.#waiting.add(line);
    this.#fill();
  }

  #fill(): void {
    for (const line of this.#waiting) {
      if (this.#begun.size >= BEGUN_AT_ONCE) return;
      this.#waiting.delete(line);
      this.#begun.wait(line);
    }
  }

  #lineOf(connection: unknown): Line {
    const known = this.#lines.get(connection);
    if (known !== undefined) return known;
    const line = new Line(connection);
    this.#lines.set(connection, line);
    this.#waiting.add(line);
    this.#fill();
    return line;
  }

  #add(piece: Piece): void {
    const { line, bytes } = piece;
    line.pieces.add(piece);
    line.bytes += bytes;
    this.#times.add(piece);
    this.#pieces++;
    this.#bytes += bytes;
  }

  #remove(piece: Piece): void {
    const { line, bytes } = piece;
    line.pieces.delete(piece);
    line.bytes -= bytes;
    this.#times.remove(piece);
    this.#pieces--;
    this.#bytes -= bytes;
    if (line.pieces.size > 0) return;
    this.#lines.delete(line.connection);
    this.#begun.cancel(line);
    this.#waiting.delete(line);
    this.#fill();
  }
}
