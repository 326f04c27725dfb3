import { parseRedisUrl } from '../../../src/storage/redis/connection/redis-address.js';
import type { ProxyStoreOptions } from '../../../src/storage/redis/proxy/proxy-store.js';
import { FakeClock } from '../clock/fake-clock.js';
import { PROXY_KINDS, type ProxyKind } from '../redis/proxy-kinds.js';
import { redisCommand } from '../redis/redis-command.js';
import { type RedisServer, startRedis } from '../redis/redis-server.js';
import type { ShardingProxy } from '../redis/sharding-proxy.js';
import { SingleProxyStore } from '../redis/single-stores.js';
import { REDIS } from './store-options.js';
import type { TestBench, TestStoreOptions } from './test-stores.js';

const SERVERS = 3;

/** Returns a bench for each installed kind of proxy, with and without hash tags. */
export function proxyBenches(): ProxyBench[] {
  const kinds = PROXY_KINDS.filter(({ isInstalled }) => isInstalled);
  return kinds.flatMap((kind) => [true, false].map((honours) => new ProxyBench(kind, honours)));
}

/** Buckets in three real Redis servers behind a real proxy. */
export class ProxyBench implements TestBench {
  readonly name: string;
  readonly clock = FakeClock.ofRedis();
  readonly honoursHashTags: boolean;
  private readonly kind: ProxyKind;
  private servers: RedisServer[] = [];
  private running: ShardingProxy | undefined;
  private stores: SingleProxyStore[] = [];

  constructor(kind: ProxyKind, honoursHashTags: boolean) {
    this.kind = kind;
    this.honoursHashTags = honoursHashTags;
    this.name = `${kind.name} ${honoursHashTags ? 'with' : 'without'} hash tags`;
  }

  get proxy(): ShardingProxy {
    return this.running as ShardingProxy;
  }

  async start(): Promise<void> {
    this.servers = await Promise.all(Array.from({ length: SERVERS }, () => startRedis()));
    const ports = this.servers.map(({ port }) => port);
    this.running = await this.kind.start({ servers: ports, honoursHashTags: this.honoursHashTags });
  }

  async stop(): Promise<void> {
    await this.reset();
    await this.running?.stop();
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  open(options: TestStoreOptions = {}): Promise<SingleProxyStore> {
    return this.openWith({ clock: () => this.clock.wallMicros(), ...options });
  }

  /** Opens a store with any options, on the servers' clocks unless the options name one. */
  async openWith(options: Partial<ProxyStoreOptions>): Promise<SingleProxyStore> {
    const address = { ...parseRedisUrl(`127.0.0.1:${this.proxy.port}`), proxy: true };
    // A request with thousands of buckets causes thousands of calls, which count as requests of one connection.
    const patient = { ...REDIS, timeoutMicros: 10_000_000, maxInFlight: 40_000 };
    const store = new SingleProxyStore({ ...patient, address, ...options });
    this.stores.push(store);
    await store.reached;
    return store;
  }

  async reset(): Promise<void> {
    await Promise.all(this.stores.map((store) => store.close()));
    this.stores = [];
    for (const server of this.servers) await redisCommand(server, 'flushall');
  }
}
