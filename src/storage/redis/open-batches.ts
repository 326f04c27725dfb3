import type { TakeItem } from '../../limiter/bucket-store.js';
import type { Part } from '../sharded/shard.js';
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
  #latest: Map<Part, TakeBatch> | undefined;
  #latestUndoing: Map<Part, TakeBatch> | undefined;

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
  find(items: readonly TakeItem[], part: Part, takenOn: unknown): TakeBatch | undefined {
    const last = (takenOn === undefined ? this.#latest : this.#latestUndoing)?.get(part);
    if (last === undefined || last.takenOn !== takenOn) return undefined;
    return this.hasRoomFor(last, items.length) && last.suits(items) ? last : undefined;
  }

  add(batch: TakeBatch): void {
    this.#batches.push(batch);
    if (batch.undoes) {
      this.#latestUndoing ??= new Map();
      this.#latestUndoing.set(batch.part, batch);
    } else {
      this.#latest ??= new Map();
      this.#latest.set(batch.part, batch);
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
    this.#latestUndoing = undefined;
    return batches;
  }
}
