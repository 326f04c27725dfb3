/** Streams that are reset in one turn of the event loop: about a millisecond's work. */
const RESETS_IN_A_TURN = 500;

/** A connection whose socket is gone. */
export interface LostConnection {
  readonly openStreams: number;
  /** Resets `most` of its streams at most. */
  lost(most: number): void;
}

/**
 * Connections that are gone, with streams that are still to be told. Peers choose when connections end: thousands in
 * the same turn of the event loop, each with all the streams that it may have. What is few is done at once, the rest in
 * the turns to come.
 */
export class LostConnections {
  readonly #nextTurn: (callback: () => void) => void;
  /** In the order in which they went: a Set keeps it. */
  readonly #waiting = new Set<LostConnection>();
  #left = RESETS_IN_A_TURN;
  #scheduled = false;

  /** `nextTurn` calls back once what waits in the event loop has had its turn; setImmediate when absent. */
  constructor(nextTurn?: (callback: () => void) => void) {
    this.#nextTurn = nextTurn ?? setImmediate;
  }

  /** Connections that have streams left. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** `connection` is gone. */
  add(connection: LostConnection): void {
    this.#reset(connection);
    if (connection.openStreams > 0) this.#waiting.add(connection);
    if (this.#left < RESETS_IN_A_TURN) this.#schedule();
  }

  #reset(connection: LostConnection): void {
    const most = this.#left;
    this.#left -= Math.min(most, connection.openStreams);
    connection.lost(most);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#nextTurn(() => {
      this.#scheduled = false;
      this.#left = RESETS_IN_A_TURN;
      this.#turn();
    });
  }

  #turn(): void {
    for (const connection of this.#waiting) {
      if (this.#left <= 0) break;
      this.#reset(connection);
      if (connection.openStreams === 0) this.#waiting.delete(connection);
    }
    if (this.#left < RESETS_IN_A_TURN) this.#schedule();
  }
}
