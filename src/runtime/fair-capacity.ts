import { expectState } from '../invariant.js';

/** Share of the room that is kept for connections that hold none of it, and share that such a one may ask for. */
const RESERVED_SHARE = 1 / 8;
const SMALL_REQUEST_SHARE = 1 / 512;

/**
 * Room that is shared by all who wait: items, or bytes. Of its upper half a connection has no more than is left free
 * beside an eighth that is kept for those that hold nothing of it and ask little; nothing is counted by connection
 * while less than half is taken. A connection `undefined` stands for callers without one, who share nothing.
 */
export class FairCapacity {
  readonly #capacity: number;
  readonly #held = new Map<unknown, number>();
  #used = 0;

  /** `most`: what may be taken altogether. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** What is taken. */
  get used(): number {
    return this.#used;
  }

  /** Whether a connection may have so much more. While less than half is taken everybody may, however much it is. */
  canAcquire(amount: number, connection: unknown): boolean {
    if (this.#used === 0 || 2 * this.#used < this.#capacity) return true;
    const free = this.#capacity - this.#used;
    if (amount > free) return false;
    if (connection === undefined) return true;
    const held = this.#held.get(connection) ?? 0;
    if (held === 0 && amount <= Math.max(1, this.#capacity * SMALL_REQUEST_SHARE)) return true;
    return held + amount <= free - this.#capacity * RESERVED_SHARE;
  }

  /** Takes it. Returns whether it is scarce: {@link release} must be told whose it is then. */
  acquire(amount: number, connection: unknown): boolean {
    const isContended = connection !== undefined && 2 * this.#used >= this.#capacity;
    this.#used += amount;
    if (isContended) this.#held.set(connection, (this.#held.get(connection) ?? 0) + amount);
    return isContended;
  }

  /** Gives back what was taken; `scarce` tells how much of it was scarce when it was taken, by connection. */
  release(amount: number, contended?: Iterable<readonly [connection: unknown, amount: number]>): void {
    this.#used -= amount;
    expectState(this.#used >= 0, 'no more capacity is released than was acquired');
    if (contended === undefined) return;
    for (const [connection, part] of contended) {
      const left = (this.#held.get(connection) ?? 0) - part;
      if (left > 0) this.#held.set(connection, left);
      else this.#held.delete(connection);
    }
  }
}
