import type { BucketStore, StorageError, TakeItem, TakeResult } from '../../limiter/bucket-store.js';

/**
 * What must be the same for buckets to be decided in one call: the slot of a Redis Cluster, the hash tag or the whole
 * key behind a proxy that shards.
 */
export type Partition = string | number;

/** What became of giving back what a request took: done, refused or not answered, or not sent. */
export type GiveBackResult = 'made' | 'failed' | 'skipped';

/** How one part of a request is asked for. */
export interface PartitionTake {
  readonly partition: Partition;
  /** At least one, all of this part. */
  readonly items: readonly TakeItem[];
  readonly deadlineMicros: number;
  /** See {@link BucketStore.take}. */
  readonly connection: unknown;
  readonly mayWait: boolean;
  /** Whether the request that it is a part of has many items, so that it has to take turns. */
  readonly isLarge: boolean;
}

/** How the parts of one request are asked. */
export type TakeOptions = Omit<PartitionTake, 'partition' | 'items'>;

/** One of the servers that buckets are spread over. Keeps the contract of {@link BucketStore} for items of one part. */
export interface Shard {
  /** Why it would refuse a take now, whatever that asks; undefined where it would not. */
  refusal(mayWait: boolean): StorageError | undefined;
  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult>;
  /**
   * What its buckets lie on now: equal (`===`) as long as what was taken is there, another value once a connection was
   * lost and a Redis that does not know of it may have followed; undefined while that is away.
   */
  readonly connectionEpoch: unknown;
  /**
   * Gives back, once, what was taken while {@link connectionEpoch} was `takenOn`; `skipped` where it is another one
   * now, or was away. The items are those of `refundsOf`, of one part. Never rejects, is over by its deadline, and
   * follows no redirection.
   */
  giveBackPartition(take: PartitionTake, takenOn: unknown): Promise<GiveBackResult>;
}

/** Says where buckets lie. */
export interface ShardMap {
  /** The part that all buckets are of; undefined where there are several. */
  readonly onlyPartition?: Partition | undefined;
  partitionOf(item: TakeItem): Partition;
  /** The server of a part; an error where none has it. */
  shardOf(partition: Partition): Shard | StorageError;
  /** Closes all shards. Running takes are settled first. */
  close(): Promise<void>;
}
