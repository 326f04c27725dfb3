import type { TakeItem } from '../../limiter/bucket-store.js';
import type { Partition } from '../sharded/shard.js';
import type { TakeBatch } from './take-batch.js';
import { slotLoad } from './take-group.js';

/** Maximum number of items of an ordinary request. A request with more is a *bulk request*. */
export const MAX_ORDINARY_ITEMS = 16;

/** Maximum number of takes in one call, unless a single request has more. Each take blocks Redis for 4 to 6 µs. */
export const MAX_TAKES_PER_CALL = 1000;

/**
 * The calls of the current turn of the event loop, to which requests are added. Bulk requests have separate calls,
 * which may have to wait ({@link InFlightCalls}).
 */
export class OpenBatches {
  readonly #keysPerCall: number;
  #batches: TakeBatch[] = [];
  /**
   * The latest call for each partition, by {@link kindOf}. Each turn that needs them creates new maps, because a
   * cleared Map keeps its tables alive, see LinkedList.
   */
  #latest: (Map<Partition, TakeBatch> | undefined)[] = [];

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
    const kind = kindOf(items.length > MAX_ORDINARY_ITEMS, takenEpoch !== undefined);
    const last = this.#latest[kind]?.get(partition);
    if (last === undefined || last.takenEpoch !== takenEpoch) return undefined;
    const { load, itemCount } = last;
    const { length } = items;
    if (load + length + slotLoad(items) > this.#keysPerCall) return undefined;
    return itemCount + length > MAX_TAKES_PER_CALL ? undefined : last;
  }

  add(batch: TakeBatch): void {
    this.#batches.push(batch);
    const kind = kindOf(batch.isBulk, batch.isGiveBack);
    this.#latest[kind] ??= new Map();
    this.#latest[kind].set(batch.partition, batch);
  }

  /** Removes and returns all calls. No request is added to them afterwards. */
  takeAll(): TakeBatch[] {
    const batches = this.#batches;
    this.#batches = [];
    this.#latest = [];
    return batches;
  }
}

/** Returns a number from 0 to 3. Requests of different kinds are never in one call. */
function kindOf(isBulk: boolean, isGiveBack: boolean): number {
  return (isBulk ? 1 : 0) + (isGiveBack ? 2 : 0);
}
