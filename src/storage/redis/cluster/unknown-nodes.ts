import { expectState } from '../../../invariant.js';
import { type BucketStore, StorageError, type TakeResult } from '../../../limiter/bucket-store.js';
import { timerMs } from '../../../limiter/clock.js';
import { withTimeout } from '../../../runtime/turns.js';
import type { GiveBackResult, Partition, PartitionTake, Shard } from '../../sharded/shard.js';
import type { ReconnectGrace } from '../load/reconnect-grace.js';

/** The part that all buckets are of until the nodes are known; no slot. */
export const UNKNOWN_PARTITION: Partition = '';

/** Settings of {@link UnknownNodes}. */
export interface UnknownNodesOptions {
  /** As logs show the cluster. */
  readonly name: string;
  readonly isKnown: () => boolean;
  /** Lives as long as requests may wait for the nodes. */
  readonly reconnectGrace: ReconnectGrace;
  /** Asks for what has waited. */
  readonly takeAgain: BucketStore['take'];
  /** Most items that wait, and how long. */
  readonly maxInFlight: number;
  readonly timeoutMicros: number;
  readonly monotonicMicros: () => number;
}

/** Stands in for the nodes of a Redis Cluster at the start, until one of them has said who serves which slots. */
export class UnknownNodes implements Shard {
  /** What waited is taken from several nodes: nothing is given back to all of them at once. */
  readonly connectionEpoch = undefined;
  readonly #options: UnknownNodesOptions;
  #waitingItems = 0;

  constructor(options: UnknownNodesOptions) {
    this.#options = options;
  }

  refusal(mayWait: boolean): StorageError | undefined {
    const { name, reconnectGrace, isKnown } = this.#options;
    if (isKnown() || (reconnectGrace.isActive && mayWait)) return undefined;
    return new StorageError('disconnected', `Redis ${name} is away`);
  }

  /** Waits, where there is hope, until the nodes are known. */
  async takePartition({ items, deadlineMicros, connection, mayWait }: PartitionTake): Promise<TakeResult> {
    const { reconnectGrace, takeAgain, maxInFlight, timeoutMicros, monotonicMicros } = this.#options;
    const { length } = items;
    const refusal = this.refusal(mayWait);
    if (refusal !== undefined) return refusal;
    if (this.#waitingItems > 0 && this.#waitingItems + length > maxInFlight) {
      return new StorageError('overloaded', 'too much waits for the Redis Cluster to be found');
    }
    this.#waitingItems += length;
    const leftMicros = Math.min(deadlineMicros - monotonicMicros(), timeoutMicros);
    await withTimeout(Math.max(0, Math.floor(timerMs(leftMicros)) - 1), reconnectGrace.whenEnded(), () => {});
    this.#waitingItems -= length;
    expectState(this.#waitingItems >= 0, 'no more items end to wait for a cluster than began');
    // By now the nodes are known, or no time is left.
    return this.refusal(false) ?? takeAgain(items, deadlineMicros, connection, mayWait);
  }

  async giveBackPartition(): Promise<GiveBackResult> {
    return 'skipped';
  }
}
