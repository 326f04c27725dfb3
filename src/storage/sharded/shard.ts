import type { BucketStore, StorageError, Take, TakeResult } from '../../limiter/bucket-store.js';

/**
 * Identifies a group of buckets that one call can decide together. In a Redis Cluster, this is the slot of a bucket,
 * together with its key while the slot is migrating.
 */
export type Partition = string | number;

/** Result of giving back hits. `made`: applied. `failed`: refused, or not answered. `skipped`: not sent. */
export type RollbackResult = 'made' | 'failed' | 'skipped';

export interface PartitionTake {
  readonly partition: Partition;
  /** At least one item, all in this partition. */
  readonly items: readonly Take[];
  readonly deadlineMicros: number;
  /** See {@link BucketStore.take}. */
  readonly mayWait: boolean;
}

/** Options that all partitions of a request share. */
export type TakeOptions = Omit<PartitionTake, 'partition' | 'items'>;

/**
 * One of the servers that store buckets. For items of one partition, it fulfills the contract of {@link BucketStore}.
 */
export interface Shard {
  /** Returns the reason why the server would refuse all takes at the moment; undefined if it would accept them. */
  refusal(mayWait: boolean): StorageError | undefined;
  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult>;
  /**
   * Identifies the connection. The value does not change (`===`) as long as Redis certainly has the effects of earlier
   * takes. If the connection is lost, and the new one may lead to a Redis without these effects, the value changes.
   * Undefined if there is no connection.
   */
  readonly connectionId: unknown;
  /**
   * Gives back the hits that were taken while {@link connectionId} was `takenOn`, and does so only once. Returns
   * `skipped` if the epoch has changed. The items come from `refundsOf`, and are all in one partition. Never rejects,
   * resolves by the deadline, and does not follow redirections.
   */
  rollBackPartition(take: PartitionTake, takenOn: unknown): Promise<RollbackResult>;
}

/** Maps buckets to servers. */
export interface ShardMap {
  /** The partition of all buckets; undefined if there are several partitions. */
  readonly onlyPartition?: Partition | undefined;
  partitionOf(take: Take): Partition;
  /** Returns the server of a partition, or an error if the partition has no server. */
  shardOf(partition: Partition): Shard | StorageError;
  /** Closes all shards after their takes have settled. */
  close(): Promise<void>;
}
