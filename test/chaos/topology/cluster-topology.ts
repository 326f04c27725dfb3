import type { Random } from '../../fuzz/random.js';
import { waitFor } from '../../support/process/wait-for.js';
import {
  type AnnouncedBus,
  BUS_OFFSET,
  type RedisCluster,
  startCluster,
} from '../../support/redis/cluster.js';
import type { ClusterNode } from '../../support/redis/cluster-node.js';
import { servesSlot } from '../../support/redis/cluster-view.js';
import { keyOfBucket } from '../calls/buckets.js';
import { FaultProxy } from '../fault-proxy.js';
import { RedisNode } from './redis-node.js';
import type { Topology } from './topology.js';

/** Address of the proxies for clients. Each node announces this address, and uses 127.0.0.1 for other nodes. */
const ANNOUNCED_HOST = '127.0.0.2';
/** Prefix of the addresses from which nodes connect to each other: 127.0.1.1 for the first node. */
const SOURCE_PREFIX = '127.0.1.';
const NODE_TIMEOUT_MS = 1500;
const WRITABLE_TIMEOUT_MS = 10_000;

/** Three masters, each with a replica, without persistence. Each node is behind a {@link FaultProxy}. */
export class ClusterTopology implements Topology {
  readonly name = 'cluster';
  readonly isSharded = true;
  readonly cluster: RedisCluster;
  private readonly random: Random;
  private readonly redisNodes = new Map<ClusterNode, RedisNode>();
  private readonly proxies = new Map<ClusterNode, FaultProxy>();
  private readonly slots = new Map<string, number>();
  private readonly buses: BusProxies;
  private readonly seeds: string;

  private constructor(cluster: RedisCluster, buses: BusProxies, random: Random) {
    this.cluster = cluster;
    this.buses = buses;
    this.random = random;
    this.seeds = cluster.nodes.map(({ port }) => `${ANNOUNCED_HOST}:${port}`).join(',');
  }

  static async start(random: Random): Promise<ClusterTopology> {
    const buses = new BusProxies(random);
    const cluster = await startCluster({
      replicas: 1,
      busBefore: (port) => buses.put(port),
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      args: [
        ...['--cluster-announce-hostname', ANNOUNCED_HOST, '--cluster-preferred-endpoint-type', 'hostname'],
        ...['--enable-debug-command', 'local'],
      ],
    });
    const topology = new ClusterTopology(cluster, buses, random);
    for (const node of cluster.nodes) await topology.putProxyBefore(node);
    return topology;
  }

  get env(): NodeJS.ProcessEnv {
    return { REDIS_TYPE: 'cluster', REDIS_URL: this.seeds };
  }

  async nodesOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    const nodes = new Map<string, RedisNode>();
    for (const [node, names] of await this.bucketsByMaster(buckets)) {
      for (const name of names) nodes.set(name, this.redis(node));
    }
    return nodes;
  }

  /** Returns the buckets that each master serves. */
  async bucketsByMaster(buckets: readonly string[]): Promise<ReadonlyMap<ClusterNode, ReadonlySet<string>>> {
    const bucketsByMaster = new Map<ClusterNode, ReadonlySet<string>>();
    for (const node of await this.cluster.masters()) bucketsByMaster.set(node, new Set());
    const owners = await this.cluster.mastersOf(await Promise.all(buckets.map((name) => this.slotOf(name))));
    owners.forEach((node, at) => {
      if (node !== undefined)
        (bucketsByMaster.get(node) as Set<string> | undefined)?.add(buckets[at] as string);
    });
    return bucketsByMaster;
  }

  /** Returns the slot of a bucket. */
  async slotOf(bucket: string): Promise<number> {
    const known = this.slots.get(bucket);
    if (known !== undefined) return known;
    const slot = await this.cluster.slotOf(keyOfBucket(bucket));
    this.slots.set(bucket, slot);
    return slot;
  }

  redis(node: ClusterNode): RedisNode {
    return this.redisNodes.get(node) as RedisNode;
  }

  proxy(node: ClusterNode): FaultProxy {
    return this.proxies.get(node) as FaultProxy;
  }

  /** Returns the number of error answers with this code, such as `MOVED`, from all running nodes. */
  async errors(code: string): Promise<number> {
    const running = this.cluster.nodes.filter(({ isRunning }) => isRunning);
    const counts = await Promise.all(running.map((node) => this.redis(node).errors(code)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Kills a node, and closes its proxy, so that connections to its address are refused. */
  async kill(node: ClusterNode): Promise<void> {
    await node.kill();
    await this.proxy(node).close();
  }

  async restart(node: ClusterNode): Promise<void> {
    await this.proxy(node).open();
    await node.restart();
  }

  /** Waits until the master of a bucket accepts writes and all masters agree on it. Resolves with the time. */
  async waitUntilWritable(bucket: string): Promise<number> {
    const slot = await this.slotOf(bucket);
    await waitFor(
      `slot ${slot} to be served`,
      async () => {
        const node = await this.cluster.masterOf(slot);
        await this.redis(node).waitUntilWritable(`${keyOfBucket(bucket)}:serves`);
        for (const master of await this.cluster.masters()) {
          const owner = (await master.view()).find((line) => servesSlot(line, slot));
          if (owner?.id !== node.id) return undefined;
        }
        return true;
      },
      WRITABLE_TIMEOUT_MS,
    );
    return performance.now();
  }

  /** Drops all packets between a node and the other nodes. Clients can still reach the node. */
  cutOff({ port }: ClusterNode): void {
    this.buses.cutOff(port);
  }

  /** Reconnects all nodes. */
  rejoin(): void {
    this.buses.heal();
  }

  /** Adds a master without slots. */
  async addNode(): Promise<ClusterNode> {
    const node = await this.cluster.addNode();
    await this.putProxyBefore(node);
    return node;
  }

  /** Removes a node without slots. */
  async removeNode(node: ClusterNode): Promise<void> {
    await this.cluster.removeNode(node);
    await this.proxy(node).close();
    this.proxies.delete(node);
    this.redisNodes.delete(node);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.close()));
    await this.cluster.stop();
    await this.buses.stop();
  }

  private async putProxyBefore(node: ClusterNode): Promise<void> {
    this.redisNodes.set(node, new RedisNode(node.server));
    this.proxies.set(node, await FaultProxy.create(node.port, this.random, ANNOUNCED_HOST, node.port));
  }
}

/** Proxies in front of the cluster buses of the nodes. */
class BusProxies {
  private readonly random: Random;
  private sources = 0;
  private readonly byPort = new Map<number, { readonly proxy: FaultProxy; readonly source: string }>();

  constructor(random: Random) {
    this.random = random;
  }

  async put(port: number): Promise<AnnouncedBus> {
    const source = `${SOURCE_PREFIX}${++this.sources}`;
    const proxy = await FaultProxy.create(port, this.random);
    this.byPort.set(port, { proxy, source });
    return { port: proxy.port, source };
  }

  /** Drops all packets from and to the bus of the node with this client port. */
  cutOff(port: number): void {
    const own = this.byPort.get(port + BUS_OFFSET);
    if (own === undefined) throw new Error(`no node on port ${port}`);
    for (const { proxy } of this.byPort.values()) {
      proxy.start(proxy === own.proxy ? { kind: 'drop' } : { kind: 'drop', from: own.source });
    }
  }

  heal(): void {
    for (const { proxy } of this.byPort.values()) proxy.heal();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.byPort.values()].map(({ proxy }) => proxy.close()));
  }
}
