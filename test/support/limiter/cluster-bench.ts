import type { ClusterStoreOptions } from '../../../src/storage/redis/cluster/cluster-store.js';
import { parseClusterUrl } from '../../../src/storage/redis/connection/redis-address.js';
import { FakeClock } from '../clock/fake-clock.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { type RedisCluster, startCluster } from '../redis/cluster.js';
import { SingleClusterStore } from '../redis/single-stores.js';
import { REDIS } from './store-options.js';
import type { TestBench, TestStoreOptions } from './test-stores.js';

/** Servers that a cluster may consist of, named as in tools.ts. */
const SERVERS = {
  'redis-server': 'a Redis Cluster',
  'valkey-server': 'a cluster of Valkey 9',
} as const;

/** Returns a bench for each kind of cluster that the store contract covers. */
export function clusterBenches(): ClusterBench[] {
  return (Object.keys(SERVERS) as (keyof typeof SERVERS)[]).map((tool) => new ClusterBench(tool));
}

/** Buckets in a real cluster of three masters, each with a replica. */
export class ClusterBench implements TestBench {
  readonly name: string;
  readonly clock = FakeClock.ofRedis();
  private readonly tool: keyof typeof SERVERS;
  private running: RedisCluster | undefined;
  private stores: SingleClusterStore[] = [];

  constructor(tool: keyof typeof SERVERS) {
    this.tool = tool;
    this.name = SERVERS[tool];
  }

  get cluster(): RedisCluster {
    return this.running as RedisCluster;
  }

  async start(): Promise<void> {
    this.running = await startCluster({ binary: toolPath(this.tool), replicas: 1 });
  }

  open(options: TestStoreOptions = {}): Promise<SingleClusterStore> {
    return this.openWith({ clock: () => this.clock.wallMicros(), ...options });
  }

  /**
   * Opens a store with any options, on Redis's own clocks unless the options name one. Resolves once all nodes are
   * available.
   */
  async openWith(options: Partial<ClusterStoreOptions>): Promise<SingleClusterStore> {
    // A request with thousands of buckets causes thousands of calls.
    const patient = { ...REDIS, timeoutMicros: 10_000_000 };
    const store = new SingleClusterStore({
      ...patient,
      address: parseClusterUrl(this.cluster.url),
      ...options,
    });
    this.stores.push(store);
    await waitFor('all nodes to be up', async () => store.isComplete);
    return store;
  }

  async reset(): Promise<void> {
    await Promise.all(this.stores.map((store) => store.close()));
    this.stores = [];
    for (const node of (await this.running?.masters()) ?? []) await node.command('FLUSHALL');
  }
}
