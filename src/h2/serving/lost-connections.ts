import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';

/** Maximum number of streams reset in one turn of the event loop. This takes about a millisecond. */
const RESETS_PER_TURN = 500;

/** A connection whose socket has closed. */
export interface LostConnection {
  readonly openStreams: number;
  /** Resets at most `most` streams. */
  resetStreams(maxStreams: number): void;
}

/**
 * Resets the streams of connections whose sockets have closed. Peers choose when connections end: thousands may end in
 * the same turn of the event loop, each with its maximum number of streams. A few streams are reset immediately, the
 * rest in later turns.
 */
export class LostConnections {
  readonly #turns: TurnScheduler<LostConnection>;

  constructor(nextTurn?: NextTurn) {
    const serve = (connection: LostConnection) => this.add(connection);
    this.#turns = new TurnScheduler({ budget: RESETS_PER_TURN, serve, nextTurn });
  }

  /** Number of connections with open streams. */
  get waiting(): number {
    return this.#turns.size;
  }

  /** Resets the streams of a connection that was lost, now or in later turns. */
  add(connection: LostConnection): void {
    const maxStreams = this.#turns.remaining;
    this.#turns.spend(Math.min(maxStreams, connection.openStreams));
    connection.resetStreams(maxStreams);
    if (connection.openStreams > 0) this.#turns.wait(connection);
  }
}
