import { expectState } from '../invariant.js';

/** Share of the room that is kept for connections that hold none of it, and share that such a one may ask for. */
const NEWCOMERS = 1 / 8;
const LITTLE = 1 / 512;

/**
 * Room that is shared by all who wait: items, or bytes. Of its upper half a connection has no more than is left free
 * beside an eighth that is kept for those that hold nothing of it and ask little; nothing is counted by connection
 * while less than half is taken. A connection `undefined` stands for callers without one, who share nothing.
 */
export class Room {
  readonly #most: number;
  readonly #held = new Map<unknown, number>();
  #taken = 0;

  /** `most`: what may be taken altogether. */
  constructor(most: number) {
    this.#most = most;
  }

  /** What is taken. */
  get taken(): number {
    return this.#taken;
  }

  /** Whether a connection may have so much more. While less than half is taken everybody may, however much it is. */
  has(amount: number, connection: unknown): boolean {
    if (this.#taken === 0 || 2 * this.#taken < this.#most) return true;
    const free = this.#most - this.#taken;
    if (amount > free) return false;
    if (connection === undefined) return true;
    const held = this.#held.get(connection) ?? 0;
    if (held === 0 && amount <= Math.max(1, this.#most * LITTLE)) return true;
    return held + amount <= free - this.#most * NEWCOMERS;
  }

  /** Takes it. Returns whether it is scarce: {@link giveBack} must be told whose it is then. */
  take(amount: number, connection: unknown): boolean {
    const isScarce = connection !== undefined && 2 * this.#taken >= this.#most;
    this.#taken += amount;
    if (isScarce) this.#held.set(connection, (this.#held.get(connection) ?? 0) + amount);
    return isScarce;
  }

  /** Gives back what was taken; `scarce` tells how much of it was scarce when it was taken, by connection. */
  giveBack(amount: number, scarce?: Iterable<readonly [connection: unknown, amount: number]>): void {
    this.#taken -= amount;
    expectState(this.#taken >= 0, 'no more room is given back than was taken');
    if (scarce === undefined) return;
    for (const [connection, part] of scarce) {
      const left = (this.#held.get(connection) ?? 0) - part;
      if (left > 0) this.#held.set(connection, left);
      else this.#held.delete(connection);
    }
  }
}
