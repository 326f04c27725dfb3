import type { StorageError, Take, TakeResult } from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import type {
  Partition,
  PartitionTake,
  RollbackResult,
  Shard,
  ShardMap,
} from '../../../src/storage/sharded/shard.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { MEMORY } from '../limiter/store-options.js';

/** A server with its buckets in memory, which records its calls. */
class MemoryShard implements Shard {
  readonly memory: MemoryStore;
  readonly asked: PartitionTake[] = [];
  readonly returned: PartitionTake[] = [];
  connectionId: unknown = 1;
  refuses: StorageError | undefined;
  /** Answers instead of the buckets, if set. */
  answer: (take: PartitionTake) => TakeResult | Promise<TakeResult> | undefined = () => undefined;
  answerReturn: (take: PartitionTake) => Promise<RollbackResult> | undefined = () => undefined;
  closed = false;

  constructor(clock: FakeClock, countDeniedHits: boolean) {
    this.memory = new MemoryStore({ ...MEMORY, clock, countDeniedHits });
  }

  refusal(): StorageError | undefined {
    return this.refuses;
  }

  takePartition(take: PartitionTake): TakeResult | Promise<TakeResult> {
    this.asked.push(take);
    return this.answer(take) ?? Promise.resolve(this.memory.take(take.items));
  }

  async rollBackPartition(take: PartitionTake, epochAtTake: unknown): Promise<RollbackResult> {
    if (epochAtTake === undefined || epochAtTake !== this.connectionId) return 'skipped';
    this.returned.push(take);
    const answer = this.answerReturn(take);
    if (answer !== undefined) return answer;
    this.memory.take(take.items);
    return 'made';
  }
}

/** A shard for each partition, created on first use. By default, the first character of a key is its partition. */
export class MemoryShards implements ShardMap {
  readonly #shards = new Map<Partition, MemoryShard>();
  readonly #fresh: () => MemoryShard;
  readonly #partOf: (key: string) => Partition;
  /** Errors that answer instead of a partition's server. */
  readonly errors = new Map<Partition, StorageError>();
  looks = 0;

  constructor(
    clock: FakeClock,
    countDeniedHits: boolean,
    partOf: (key: string) => Partition = (key) => key.charAt(0),
  ) {
    this.#fresh = () => new MemoryShard(clock, countDeniedHits);
    this.#partOf = partOf;
  }

  partitionOf({ key }: Take): Partition {
    this.looks++;
    return this.#partOf(key);
  }

  shardOf(part: Partition): MemoryShard | StorageError {
    return this.errors.get(part) ?? this.of(part);
  }

  /** Returns the shard of a bucket; does not count as a lookup. */
  shardAt({ key }: Take): MemoryShard {
    return this.of(this.#partOf(key));
  }

  of(part: Partition): MemoryShard {
    let shard = this.#shards.get(part);
    if (shard === undefined) {
      shard = this.#fresh();
      this.#shards.set(part, shard);
    }
    return shard;
  }

  /** Total number of buckets in all shards. */
  get size(): number {
    return [...this.#shards.values()].reduce((sum, { memory }) => sum + memory.size, 0);
  }

  async close(): Promise<void> {
    for (const shard of this.#shards.values()) shard.closed = true;
  }
}
