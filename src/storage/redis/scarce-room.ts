import type { TakeBatch } from './take-batch.js';

/**
 * The upper half of what may wait for Redis. A connection has no more of it than is left free, so that there is always room for those that ask
 * little; nothing is counted while less than half is taken.
 */
export class ScarceRoom {
  readonly #maxItems: number;
  readonly #held = new Map<unknown, number>();

  /** `maxItems`: most items that may wait, in both halves. */
  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** Whether a connection may have so many items more while `taken` wait; undefined stands for callers without a connection, who share nothing. */
  has(items: number, taken: number, connection: unknown): boolean {
    const free = this.#maxItems - taken;
    if (items > free) return false;
    return connection === undefined || (this.#held.get(connection) ?? 0) + items <= free;
  }

  /** Counts items that were added to `batch` while `taken` others waited. */
  take(items: number, taken: number, connection: unknown, batch: TakeBatch): void {
    if (connection === undefined || 2 * taken < this.#maxItems) return;
    this.#held.set(connection, (this.#held.get(connection) ?? 0) + items);
    batch.scarce ??= new Map();
    batch.scarce.set(connection, (batch.scarce.get(connection) ?? 0) + items);
  }

  /** Nothing of `batch` waits any more. */
  giveBack({ scarce }: TakeBatch): void {
    for (const [connection, items] of scarce ?? []) {
      const left = (this.#held.get(connection) ?? 0) - items;
      if (left > 0) this.#held.set(connection, left);
      else this.#held.delete(connection);
    }
  }
}
