import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';

/**
 * Messages that all connections together may have served in one turn of the event loop; each takes some hundred
 * microseconds at most.
 */
const MESSAGES_PER_TURN = 8;

/**
 * When messages of services that are asked rarely (health, reflection) are served: their handlers take far longer than
 * a decision, and a few kilobytes may ask thousands of questions. One message of a connection is served in a turn of
 * the event loop, and a few of all.
 */
export class AuxiliaryCallScheduler {
  readonly #turns: TurnScheduler<object>;
  /** What waits, by connection. */
  readonly #calls = new Map<object, (() => void)[]>();
  /** Connections that were served in this turn. */
  readonly #served = new Set<object>();

  constructor(nextTurn?: NextTurn) {
    this.#turns = new TurnScheduler({
      budget: MESSAGES_PER_TURN,
      onTurn: () => this.#served.clear(),
      serve: (connection) => this.#serve(connection),
      nextTurn,
    });
  }

  /** Whether a message of `connection` may be served now; if not, {@link wait}. */
  tryStart(connection: object): boolean {
    if (this.#turns.remaining <= 0 || this.#served.has(connection)) return false;
    this.#served.add(connection);
    this.#turns.spend(1);
    return true;
  }

  /** Calls `goOn` when the connection has its turn. */
  wait(connection: object, resume: () => void): void {
    const others = this.#calls.get(connection);
    if (others === undefined) this.#calls.set(connection, [resume]);
    else others.push(resume);
    this.#turns.wait(connection);
  }

  #serve(connection: object): void {
    const calls = this.#calls.get(connection) ?? [];
    this.#calls.delete(connection);
    // Those that have gone meanwhile ask for nothing.
    while (calls.length > 0 && !this.#served.has(connection)) (calls.shift() as () => void)();
    if (calls.length === 0) return;
    this.#calls.set(connection, [...calls, ...(this.#calls.get(connection) ?? [])]);
    this.#turns.wait(connection);
  }
}
