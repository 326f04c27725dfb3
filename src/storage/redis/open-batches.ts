import type { TakeItem } from '../../limiter/bucket-store.js';
import type { Partition } from '../sharded/shard.js';
import type { TakeBatch } from './take-batch.js';

/** Most takes of one call, unless a single request has more: Redis does nothing else meanwhile, 4 to 6 µs a take. */
export const MAX_TAKES_PER_CALL = 1000;

/** The calls of this turn of the event loop, to which requests of few limits are still added. */
export class OpenBatches {
  readonly #keysPerCall: number;
  #batches: TakeBatch[] = [];
  /**
   * The latest for each part, and for what is given back there. Made anew for each turn that has any: a Map that is
   * cleared keeps its tables alive, see LinkedList.
   */
  #latest: Map<Partition, TakeBatch> | undefined;
  #latestGiveBack: Map<Partition, TakeBatch> | undefined;

  /** `keysPerCall`: REDIS_BATCH_KEYS. */
  constructor(keysPerCall: number) {
    this.#keysPerCall = keysPerCall;
  }

  get size(): number {
    return this.#batches.length;
  }

  [Symbol.iterator](): Iterator<TakeBatch> {
    return this.#batches.values();
  }

  /** The call that a request goes into; undefined where it needs another one. */
  find(items: readonly TakeItem[], partition: Partition, takenEpoch: unknown): TakeBatch | undefined {
    const last = (takenEpoch === undefined ? this.#latest : this.#latestGiveBack)?.get(partition);
    if (last === undefined || last.takenEpoch !== takenEpoch) return undefined;
    return this.hasRoomFor(last, items.length) && last.accepts(items) ? last : undefined;
  }

  add(batch: TakeBatch): void {
    this.#batches.push(batch);
    if (batch.isGiveBack) {
      this.#latestGiveBack ??= new Map();
      this.#latestGiveBack.set(batch.partition, batch);
    } else {
      this.#latest ??= new Map();
      this.#latest.set(batch.partition, batch);
    }
  }

  /** Whether a call may hold a request of so many items, too. */
  hasRoomFor(batch: TakeBatch, items: number): boolean {
    return batch.load + items <= this.#keysPerCall && batch.itemCount + items <= MAX_TAKES_PER_CALL;
  }

  /** All of them; nothing is added to them any more. */
  takeAll(): TakeBatch[] {
    const batches = this.#batches;
    this.#batches = [];
    this.#latest = undefined;
    this.#latestGiveBack = undefined;
    return batches;
  }
}
