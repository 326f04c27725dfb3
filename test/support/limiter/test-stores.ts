import { Redis } from 'ioredis';
import {
  type BucketStore,
  StorageError,
  type TakeItem,
  type TakeOutcome,
} from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import type { RedisClock, RedisStoreOptions } from '../../../src/storage/redis/redis-store-options.js';
import { FakeClock } from '../clock/fake-clock.js';
import { toolPath } from '../process/tools.js';
import { RedisAlone } from '../redis/redis-alone.js';
import { type RedisServer, startRedis } from '../redis/redis-server.js';
import { MEMORY, REDIS } from './store-options.js';

export interface TestStoreOptions {
  readonly countDeniedHits?: boolean;
}

/** One implementation of BucketStore, with what suites need around it. */
export interface TestBench {
  readonly name: string;
  /** Both times of the stores; for Redis the wall time is given to the script. */
  readonly clock: FakeClock;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** A store whose buckets are all full; for Redis a store on the same server as the ones before. */
  open(options?: TestStoreOptions): Promise<BucketStore>;
  /** Empties Redis, closes the stores. */
  reset(): Promise<void>;
}

/** Buckets in memory. */
export function memoryBench(): TestBench {
  const clock = new FakeClock();
  return {
    name: 'memory',
    clock,
    start: async () => {},
    stop: async () => {},
    open: async (options = {}) => new MemoryStore({ ...MEMORY, clock, ...options }),
    reset: async () => {},
  };
}

/** Servers that speak Redis' protocol and that the contracts of stores hold on, as tools.ts names them. */
const SERVERS = {
  'redis-server': 'Redis',
  // The oldest version supported.
  'redis-server-old': 'Redis 6.2',
  'valkey-server': 'Valkey 9',
} as const;

/**
 * One bench for each kind of server that the contract of a store must hold on, and one whose scripts are given the
 * time.
 */
export function redisBenches(): RedisBench[] {
  const own = (Object.keys(SERVERS) as (keyof typeof SERVERS)[]).map((tool) => new RedisBench(tool));
  return [...own, new RedisBench('redis-server', 'caller')];
}

/** Buckets in a real Redis, or Valkey. */
export class RedisBench implements TestBench {
  readonly name: string;
  readonly clock = FakeClock.ofRedis();
  readonly clockOf: RedisClock;
  private readonly tool: keyof typeof SERVERS;
  private server: RedisServer | undefined;
  private admin: Redis | undefined;
  private stores: RedisAlone[] = [];

  /** `clockOf`: whose clock the stores go by. */
  constructor(tool: keyof typeof SERVERS, clockOf: RedisClock = 'auto') {
    this.tool = tool;
    this.clockOf = clockOf;
    this.name = `${SERVERS[tool]}${clockOf === 'caller' ? ' that is given the time' : ''}`;
  }

  /** A client of its own, to look at what is stored. */
  get redis(): Redis {
    return this.admin as Redis;
  }

  get port(): number {
    return (this.server as RedisServer).port;
  }

  async start(): Promise<void> {
    this.server = await startRedis({ binary: toolPath(this.tool) });
    this.admin = new Redis(this.port, '127.0.0.1');
  }

  async stop(): Promise<void> {
    await this.reset();
    this.admin?.disconnect();
    await this.server?.stop();
  }

  open(options: TestStoreOptions = {}): Promise<RedisAlone> {
    return this.openWith({ clock: () => this.clock.wallMicros(), ...options });
  }

  /** A store with any options; on Redis's own clock unless they name one. */
  async openWith(options: Partial<RedisStoreOptions>): Promise<RedisAlone> {
    const address = parseRedisUrl(`127.0.0.1:${this.port}`);
    const store = new RedisAlone({ ...REDIS, clockOf: this.clockOf, address, ...options });
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

/** Takes and gives the outcomes; throws when the store could not decide. */
export async function takeFrom(store: BucketStore, ...items: TakeItem[]): Promise<readonly TakeOutcome[]> {
  const result = await store.take(items, Infinity);
  if (result instanceof StorageError) throw result;
  return result;
}
