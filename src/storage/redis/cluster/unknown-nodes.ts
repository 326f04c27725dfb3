import { expectState } from '../../../invariant.js';
import { type BucketStore, StorageError, type TakeResult } from '../../../limiter/bucket-store.js';
import { timerMs } from '../../../limiter/clock.js';
import { withTimeout } from '../../../runtime/turns.js';
import type { GiveBackResult, Partition, PartitionTake, Shard } from '../../sharded/shard.js';
import type { ReconnectGrace } from '../connection/reconnect-grace.js';

/** The partition of all buckets until the nodes are known; not a slot. */
export const UNKNOWN_PARTITION: Partition = '';

/** Settings of {@link UnknownNodes}. */
export interface UnknownNodesOptions {
  /** Name of the cluster in logs. */
  readonly name: string;
  readonly isKnown: () => boolean;
  /** Active while requests may wait for the nodes. */
  readonly reconnectGrace: ReconnectGrace;
  /** Repeats a take that has waited. */
  readonly takeAgain: BucketStore['take'];
  /** Maximum number of waiting items, and maximum wait. */
  readonly maxInFlight: number;
  readonly timeoutMicros: number;
  readonly monotonicMicros: () => number;
}

/** Replaces the nodes of a Redis Cluster from the start until one of them has returned the slots. */
export class UnknownNodes implements Shard {
  /** Takes wait and are then repeated on the real nodes, so this shard never gives hits back. */
  readonly connectionEpoch = undefined;
  readonly #options: UnknownNodesOptions;
  #waitingItems = 0;

  constructor(options: UnknownNodesOptions) {
    this.#options = options;
  }

  refusal(mayWait: boolean): StorageError | undefined {
    const { name, reconnectGrace, isKnown } = this.#options;
    if (isKnown() || (reconnectGrace.isActive && mayWait)) return undefined;
    return new StorageError('disconnected', `Redis ${name} is unavailable`, { unsent: true });
  }

  /** Waits, during the grace, until the nodes are known. */
  async takePartition({ items, deadlineMicros, mayWait }: PartitionTake): Promise<TakeResult> {
    const { reconnectGrace, takeAgain, maxInFlight, timeoutMicros, monotonicMicros } = this.#options;
    const { length } = items;
    const refusal = this.refusal(mayWait);
    if (refusal !== undefined) return refusal;
    if (this.#waitingItems > 0 && this.#waitingItems + length > maxInFlight) {
      return new StorageError(
        'overloaded',
        'too many requests are waiting for the nodes of the Redis Cluster',
        { unsent: true },
      );
    }
    this.#waitingItems += length;
    const leftMicros = Math.min(deadlineMicros - monotonicMicros(), timeoutMicros);
    await withTimeout(Math.max(0, Math.floor(timerMs(leftMicros)) - 1), reconnectGrace.whenEnded(), () => {});
    this.#waitingItems -= length;
    expectState(this.#waitingItems >= 0, 'the number of waiting items is never negative');
    // Either the nodes are known now, or the time is over.
    return this.refusal(false) ?? takeAgain(items, deadlineMicros, mayWait);
  }

  async giveBackPartition(): Promise<GiveBackResult> {
    return 'skipped';
  }
}
