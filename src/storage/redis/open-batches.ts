import type { TakeItem } from '../../limiter/bucket-store.js';
import type { Partition } from '../sharded/shard.js';
import type { TakeBatch } from './take-batch.js';
import { slotLoad } from './take-group.js';

/** Maximum number of takes in one call, unless a single request has more. Each take blocks Redis for 4 to 6 µs. */
export const MAX_TAKES_PER_CALL = 1000;

/** The calls of the current turn of the event loop, to which small requests are added. */
export class OpenBatches {
  readonly #keysPerCall: number;
  #batches: TakeBatch[] = [];
  /**
   * The latest call for each partition, and the latest call with refunds. Each turn that needs them creates new maps,
   * because a cleared Map keeps its tables alive, see LinkedList.
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

  /** Returns the call to which a request can be added, or undefined if it needs a new call. */
  find(items: readonly TakeItem[], partition: Partition, takenEpoch: unknown): TakeBatch | undefined {
    const last = (takenEpoch === undefined ? this.#latest : this.#latestGiveBack)?.get(partition);
    if (last === undefined || last.takenEpoch !== takenEpoch) return undefined;
    return this.hasRoomFor(last, items) ? last : undefined;
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

  /** Returns whether a call has space for a further request. */
  hasRoomFor({ load, itemCount }: TakeBatch, items: readonly TakeItem[]): boolean {
    const { length } = items;
    return load + length + slotLoad(items) <= this.#keysPerCall && itemCount + length <= MAX_TAKES_PER_CALL;
  }

  /** Removes and returns all calls. No request is added to them afterwards. */
  takeAll(): TakeBatch[] {
    const batches = this.#batches;
    this.#batches = [];
    this.#latest = undefined;
    this.#latestGiveBack = undefined;
    return batches;
  }
}
