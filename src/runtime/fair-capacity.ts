import { checkInvariant } from './invariant.js';

/**
 * Share of the capacity that is reserved for new connections, and the maximum share that a new connection may acquire
 * from the reserve. A new connection holds no part of the upper half yet.
 */
const RESERVED_SHARE = 1 / 8;
const SMALL_REQUEST_SHARE = 1 / 512;

/**
 * A capacity, in items or bytes, that connections share fairly. Up to half of the capacity, any connection may acquire
 * as much as it needs, and nothing is counted per connection. From the upper half, a connection may hold at most as
 * much as remains free, not counting the share that is reserved for small requests of new connections. The connection
 * `undefined` stands for callers without a connection, to which the fair share does not apply.
 */
export class FairCapacity {
  readonly #capacity: number;
  readonly #held = new Map<unknown, number>();
  #used = 0;

  /** `capacity`: maximum amount that may be acquired in total. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Amount that is acquired now. */
  get used(): number {
    return this.#used;
  }

  /** Whether at least half of the capacity is used, so that connections get shares. */
  get isContended(): boolean {
    return 2 * this.#used >= this.#capacity;
  }

  /**
   * Returns whether a connection may acquire `amount`. While less than half of the capacity is used, every connection
   * may acquire any amount.
   */
  canAcquire(amount: number, connection: unknown): boolean {
    if (this.#used === 0 || !this.isContended) return true;
    const free = this.#capacity - this.#used;
    if (amount > free) return false;
    if (connection === undefined) return true;
    const held = this.#held.get(connection) ?? 0;
    if (held === 0 && amount <= Math.max(1, this.#capacity * SMALL_REQUEST_SHARE)) return true;
    return held + amount <= free - this.#capacity * RESERVED_SHARE;
  }

  /**
   * Acquires `amount`. Returns whether it was counted for the connection; if so, pass the connection to
   * {@link release}.
   */
  acquire(amount: number, connection: unknown): boolean {
    const isContended = connection !== undefined && this.isContended;
    this.#used += amount;
    if (isContended) this.#held.set(connection, (this.#held.get(connection) ?? 0) + amount);
    return isContended;
  }

  /** Releases `amount`. `contended` lists the parts that were counted for a connection when they were acquired. */
  release(amount: number, contended?: Iterable<readonly [connection: unknown, amount: number]>): void {
    this.#used -= amount;
    checkInvariant(this.#used >= 0, 'released capacity never exceeds acquired capacity');
    if (contended === undefined) return;
    for (const [connection, part] of contended) {
      const left = (this.#held.get(connection) ?? 0) - part;
      if (left > 0) this.#held.set(connection, left);
      else this.#held.delete(connection);
    }
  }
}
