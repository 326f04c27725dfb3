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
export class RareTurns {
  readonly #nextTurn: (callback: () => void) => void;
  /** By connection, in the order of their turns: a Map keeps it. */
  readonly #waiting = new Map<object, (() => void)[]>();
  /** Connections that were served in this turn. */
  readonly #served = new Set<object>();
  #scheduled = false;

  /** `nextTurn` calls back once what waits in the event loop has had its turn; setImmediate when absent. */
  constructor(nextTurn?: (callback: () => void) => void) {
    this.#nextTurn = nextTurn ?? setImmediate;
  }

  /** Whether a message of `connection` may be served now; if not, {@link wait}. */
  enter(connection: object): boolean {
    if (this.#served.size >= MESSAGES_PER_TURN || this.#served.has(connection)) return false;
    this.#served.add(connection);
    this.#schedule();
    return true;
  }

  /** Calls `goOn` when the connection has its turn. */
  wait(connection: object, goOn: () => void): void {
    const others = this.#waiting.get(connection);
    if (others === undefined) this.#waiting.set(connection, [goOn]);
    else others.push(goOn);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#nextTurn(() => {
      this.#scheduled = false;
      this.#served.clear();
      this.#turn();
      if (this.#waiting.size > 0) this.#schedule();
    });
  }

  #turn(): void {
    for (const [connection, calls] of this.#waiting) {
      if (this.#served.size >= MESSAGES_PER_TURN) return;
      if (this.#served.has(connection)) continue;
      this.#waiting.delete(connection);
      // Those that have gone meanwhile ask for nothing.
      while (calls.length > 0 && !this.#served.has(connection)) (calls.shift() as () => void)();
      if (calls.length === 0) continue;
      const later = this.#waiting.get(connection);
      this.#waiting.set(connection, later === undefined ? calls : [...calls, ...later]);
    }
  }
}
