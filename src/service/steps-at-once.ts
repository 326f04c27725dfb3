import { Turns } from '../runtime/turns.js';

/**
 * Steps (MatchWork) that a request may take at once, and those that each may take however many there are: usual ones
 * take far fewer.
 */
const MOST = 20_000;
const LEAST = 8000;
/** All requests together, in one turn of the event loop. */
const IN_A_TURN = 200_000;
/** Nobody waits longer for so few. */
const NEGLIGIBLE = 2000;

/**
 * How much matching may be done at once, before a request has to take its turns: many requests come by one read of a
 * socket, and those of all connections in one turn of the event loop.
 */
export class StepsAtOnce {
  readonly #turns = new Turns<never>({ budget: IN_A_TURN });

  /** What the next request may take. */
  give(): number {
    return Math.max(LEAST, Math.min(MOST, this.#turns.left));
  }

  /** What it took. */
  took(steps: number): void {
    if (steps > NEGLIGIBLE) this.#turns.spend(steps);
  }
}
