import type { Redis } from 'ioredis';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeOutcome,
} from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import type { RedisStoreOptions } from '../../../src/storage/redis/redis-store-options.js';
import { FakeClock } from '../clock/fake-clock.js';
import { toolPath } from '../process/tools.js';
import { redisClient } from '../redis/redis-client.js';
import { type RedisServer, startRedis } from '../redis/redis-server.js';
import { SingleRedisStore } from '../redis/single-stores.js';
import { MEMORY, REDIS } from './store-options.js';

export interface TestStoreOptions {
  readonly countDeniedHits?: boolean;
}

/** One implementation of BucketStore, with the helpers that suites need. */
export interface TestBench {
  readonly name: string;
  /** Wall and monotonic time of the stores. For Redis, the script gets the wall time. */
  readonly clock: FakeClock;
  start(): Promise<void>;
  /** Opens a store whose buckets are all full. For Redis, it uses the same server as earlier stores. */
  open(options?: TestStoreOptions): Promise<BucketStore>;
  /** Empties Redis and closes the stores. */
  reset(): Promise<void>;
}

/** Buckets in memory. */
export function memoryBench(): TestBench {
  const clock = new FakeClock();
  return {
    name: 'memory',
    clock,
    start: async () => {},
    open: async (options = {}) => new MemoryStore({ ...MEMORY, clock, ...options }),
    reset: async () => {},
  };
}

/** Servers with the Redis protocol that the store contracts cover, named as in tools.ts. */
const SERVERS = {
  'redis-server': 'Redis',
  // The oldest supported version.
  'redis-server-old': 'Redis 6.2',
  'valkey-server': 'Valkey 9',
} as const;

/** Returns a bench for each kind of server that the store contract covers. */
export function redisBenches(): RedisBench[] {
  return (Object.keys(SERVERS) as (keyof typeof SERVERS)[]).map((tool) => new RedisBench(tool));
}

/** Buckets in a real Redis or Valkey. */
export class RedisBench implements TestBench {
  readonly name: string;
  readonly clock = FakeClock.ofRedis();
  private readonly tool: keyof typeof SERVERS;
  private server: RedisServer | undefined;
  private admin: Redis | undefined;
  private stores: SingleRedisStore[] = [];

  constructor(tool: keyof typeof SERVERS) {
    this.tool = tool;
    this.name = SERVERS[tool];
  }

  /** A separate client to read stored values. */
  get redis(): Redis {
    return this.admin as Redis;
  }

  get port(): number {
    return (this.server as RedisServer).port;
  }

  async start(): Promise<void> {
    this.server = await startRedis({ binary: toolPath(this.tool) });
    this.admin = redisClient(this.port);
  }

  open(options: TestStoreOptions = {}): Promise<SingleRedisStore> {
    return this.openWith({ clock: () => this.clock.wallMicros(), ...options });
  }

  /** Opens a store with any options, on Redis's own clock unless the options name one. */
  async openWith(options: Partial<RedisStoreOptions>): Promise<SingleRedisStore> {
    const address = parseRedisUrl(`127.0.0.1:${this.port}`);
    const store = new SingleRedisStore({ ...REDIS, address, ...options });
    this.stores.push(store);
    await store.reached;
    return store;
  }

  async reset(): Promise<void> {
    await Promise.all(this.stores.map((store) => store.close()));
    this.stores = [];
    await this.admin?.flushall();
  }
}

/** Takes and returns the outcomes; throws if the store cannot decide. */
export async function takeFrom(store: BucketStore, ...takes: Take[]): Promise<readonly TakeOutcome[]> {
  const result = await store.take(takes, Infinity);
  if (result instanceof StorageError) throw result;
  return result;
}
