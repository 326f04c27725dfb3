import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';

/**
 * Maximum number of messages of all connections that are handled in one turn of the event loop. Each takes at most a
 * few hundred microseconds.
 */
const MESSAGES_PER_TURN = 8;

/**
 * Schedules messages of rarely called services (health, reflection). Their handlers take much longer than a decision,
 * and a few kilobytes may contain thousands of queries. In one turn of the event loop, one message of a connection is
 * handled, and a few of all connections.
 */
export class AuxiliaryCallScheduler {
  readonly #turns: TurnScheduler<object>;
  /** Waiting calls, by connection. */
  readonly #calls = new Map<object, (() => void)[]>();
  /** Connections with a message that was handled in this turn. */
  readonly #served = new Set<object>();

  constructor(nextTurn?: NextTurn) {
    this.#turns = new TurnScheduler({
      budget: MESSAGES_PER_TURN,
      onTurn: () => this.#served.clear(),
      serve: (connection) => this.#serve(connection),
      nextTurn,
    });
  }

  /** Returns whether a message of `connection` may be handled now. If not, call {@link wait}. */
  tryStart(connection: object): boolean {
    if (this.#turns.remaining <= 0 || this.#served.has(connection)) return false;
    this.#served.add(connection);
    this.#turns.spend(1);
    return true;
  }

  /** Calls `resume` when it is the connection's turn. */
  wait(connection: object, resume: () => void): void {
    const others = this.#calls.get(connection);
    if (others === undefined) this.#calls.set(connection, [resume]);
    else others.push(resume);
    this.#turns.wait(connection);
  }

  #serve(connection: object): void {
    const calls = this.#calls.get(connection) ?? [];
    this.#calls.delete(connection);
    // Calls that have ended meanwhile do nothing.
    while (calls.length > 0 && !this.#served.has(connection)) (calls.shift() as () => void)();
    if (calls.length === 0) return;
    this.#calls.set(connection, [...calls, ...(this.#calls.get(connection) ?? [])]);
    this.#turns.wait(connection);
  }
}
