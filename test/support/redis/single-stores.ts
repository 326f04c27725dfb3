import type { BucketStore } from '../../../src/limiter/bucket-store.js';
import { systemClock } from '../../../src/limiter/clock.js';
import { ClusterStore, type ClusterStoreOptions } from '../../../src/storage/redis/cluster/cluster-store.js';
import type { LoginSource } from '../../../src/storage/redis/connection/connection-options.js';
import type { RedisBackend } from '../../../src/storage/redis/redis-backend.js';
import { RedisStore } from '../../../src/storage/redis/redis-store.js';
import type { RedisStoreOptions } from '../../../src/storage/redis/redis-store-options.js';
import type { RollbackOptions, RollbackStats } from '../../../src/storage/sharded/rollbacks.js';
import type { ShardMap } from '../../../src/storage/sharded/shard.js';
import { ShardedStore } from '../../../src/storage/sharded/sharded-store.js';
import { closeLater } from '../process/close-later.js';

type GiveBackListener = Partial<Pick<RollbackOptions, 'onRollback'>>;

/** A store on a single Redis. */
export class SingleRedisStore extends RedisStore implements BucketStore {
  /** Resolves once Redis was reached for the first time. */
  readonly reached = new Promise<void>((resolve) => this.onUp(resolve));
  everReached = false;
  readonly #store: ShardedStore;
  readonly #login: LoginSource | undefined;

  constructor(options: RedisStoreOptions) {
    super(options);
    this.#login = options.login;
    this.onUp(() => {
      this.everReached = true;
    });
    this.#store = storeOver(this, () => super.close(), options);
    closeLater(this, () => this.close());
  }

  take(...asked: Parameters<BucketStore['take']>): ReturnType<BucketStore['take']> {
    return this.#store.take(...asked);
  }

  override async close(): Promise<void> {
    await super.close();
    this.#login?.close();
  }
}

/** A store on a single Redis Cluster. */
export class SingleClusterStore extends ClusterStore implements BucketStore {
  everReached = false;
  readonly #store: ShardedStore;
  readonly #login: LoginSource | undefined;

  constructor(options: Omit<ClusterStoreOptions, 'takeAgain'> & GiveBackListener) {
    super({ ...options, takeAgain: (...asked) => this.take(...asked) });
    this.#login = options.login;
    this.onUp(() => {
      this.everReached = true;
    });
    this.#store = storeOver(this, () => super.close(), options);
    closeLater(this, () => this.close());
  }

  get rollbackStats(): RollbackStats {
    return this.#store.rollbackStats;
  }

  take(...asked: Parameters<BucketStore['take']>): ReturnType<BucketStore['take']> {
    return this.#store.take(...asked);
  }

  override async close(): Promise<void> {
    await this.#store.close();
    this.#login?.close();
  }
}

/** Opens the kind of store that the address of a Redis selects, as the only shard. */
export function openSingleStore(
  options: RedisStoreOptions,
): RedisBackend & BucketStore & { readonly everReached: boolean } {
  const Kind = options.address.cluster === undefined ? SingleRedisStore : SingleClusterStore;
  return new Kind(options);
}

function storeOver(
  map: ShardMap,
  close: () => Promise<void>,
  { timeoutMicros, countDeniedHits, monotonicMicros, onRollback }: RedisStoreOptions & GiveBackListener,
): ShardedStore {
  return new ShardedStore({
    main: {
      onlyPartition: map.onlyPartition,
      partitionOf: (take) => map.partitionOf(take),
      shardOf: (part) => map.shardOf(part),
      close,
    },
    timeoutMicros,
    countDeniedHits,
    monotonicMicros: monotonicMicros ?? (() => systemClock.monotonicMicros()),
    onRollback,
  });
}
