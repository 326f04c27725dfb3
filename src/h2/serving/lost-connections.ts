import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';

/** Streams that are reset in one turn of the event loop: about a millisecond's work. */
const RESETS_PER_TURN = 500;

/** A connection whose socket is gone. */
export interface LostConnection {
  readonly openStreams: number;
  /** Resets `most` of its streams at most. */
  resetStreams(most: number): void;
}

/**
 * Connections that are gone, with streams that are still to be told. Peers choose when connections end: thousands in
 * the same turn of the event loop, each with all the streams that it may have. What is few is done at once, the rest in
 * the turns to come.
 */
export class LostConnections {
  readonly #turns: TurnScheduler<LostConnection>;

  constructor(nextTurn?: NextTurn) {
    const serve = (connection: LostConnection) => this.add(connection);
    this.#turns = new TurnScheduler({ budget: RESETS_PER_TURN, serve, nextTurn });
  }

  /** Connections that have streams left. */
  get waiting(): number {
    return this.#turns.size;
  }

  /** `connection` is gone. */
  add(connection: LostConnection): void {
    const most = this.#turns.remaining;
    this.#turns.spend(Math.min(most, connection.openStreams));
    connection.resetStreams(most);
    if (connection.openStreams > 0) this.#turns.wait(connection);
  }
}
