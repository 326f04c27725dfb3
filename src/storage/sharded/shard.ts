import type { BucketStore, StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';

/**
 * A property of a bucket. Only buckets with the same partition can be decided in one call. It is the slot in a Redis
 * Cluster, together with the key while the slot is migrating.
 */
export type Partition = string | number;

/** Result of giving back hits: applied, refused or without a reply, or not sent. */
export type GiveBackResult = 'made' | 'failed' | 'skipped';

export interface PartitionTake {
  readonly partition: Partition;
  /** At least one item, all in this partition. */
  readonly items: readonly TakeItem[];
  readonly deadlineMicros: number;
  /** See {@link BucketStore.take}. */
  readonly mayWait: boolean;
}

/** Options that all partitions of a request share. */
export type TakeOptions = Omit<PartitionTake, 'partition' | 'items'>;

/** One of the servers that store buckets. Fulfils the contract of {@link BucketStore} for items of one partition. */
export interface Shard {
  /** Returns why it would refuse any take now, or undefined if it would not. */
  refusal(mayWait: boolean): StorageError | undefined;
  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult>;
  /**
   * Identifies the connection. The value stays equal (`===`) as long as Redis certainly has the earlier takes. The
   * value changes after a lost connection, if the new one may lead to a Redis without these takes. Undefined without a
   * connection.
   */
  readonly connectionEpoch: unknown;
  /**
   * Gives back, once, the hits that were taken while {@link connectionEpoch} was `takenEpoch`. Returns `skipped` if it
   * has changed. The items are those of `refundsOf`, all in one partition. Never rejects, ends by its deadline, and
   * follows no redirection.
   */
  giveBackPartition(take: PartitionTake, takenEpoch: unknown): Promise<GiveBackResult>;
}

/** Maps buckets to servers. */
export interface ShardMap {
  /** The partition of all buckets; undefined if there are several. */
  readonly onlyPartition?: Partition | undefined;
  partitionOf(item: TakeItem): Partition;
  /** Returns the server of a partition, or an error if it has none. */
  shardOf(partition: Partition): Shard | StorageError;
  /** Closes all shards after their takes have settled. */
  close(): Promise<void>;
}
