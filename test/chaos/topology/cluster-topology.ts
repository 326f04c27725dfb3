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
import { ChaosProxy } from '../fault-proxy.js';
import { RedisNode } from './redis-node.js';
import type { Topology } from './topology.js';

/**
 * What nodes tell clients to connect to, each with its port, while they speak to each other on 127.0.0.1: a proxy of
 * ours listens there.
 */
const ANNOUNCED = '127.0.0.2';
/** Nodes call each other from addresses of their own, so that each can be told from the others: 127.0.1.1, and on. */
const SOURCES = '127.0.1.';
const DEAD_AFTER_MS = 1500;
const SEEN_MS = 10_000;

/** Three masters, each with a replica, every one behind a proxy of ours. They keep nothing on disk. */
export class ClusterTopology implements Topology {
  readonly name = 'cluster';
  readonly isSharded = true;
  readonly cluster: RedisCluster;
  private readonly random: Random;
  private readonly redises = new Map<ClusterNode, RedisNode>();
  private readonly proxies = new Map<ClusterNode, ChaosProxy>();
  private readonly slots = new Map<string, number>();
  private readonly buses: BusProxies;
  private readonly seeds: string;

  private constructor(cluster: RedisCluster, buses: BusProxies, random: Random) {
    this.cluster = cluster;
    this.buses = buses;
    this.random = random;
    this.seeds = cluster.nodes.map(({ port }) => `${ANNOUNCED}:${port}`).join(',');
  }

  static async start(random: Random): Promise<ClusterTopology> {
    const buses = new BusProxies(random);
    const cluster = await startCluster({
      replicas: 1,
      busBefore: (port) => buses.put(port),
      nodeTimeoutMs: DEAD_AFTER_MS,
      args: [
        ...['--cluster-announce-hostname', ANNOUNCED, '--cluster-preferred-endpoint-type', 'hostname'],
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

  async decidersOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    const deciders = new Map<string, RedisNode>();
    for (const [node, names] of await this.placesOf(buckets)) {
      for (const name of names) deciders.set(name, this.redis(node));
    }
    return deciders;
  }

  /** Which of the buckets each master serves. */
  async placesOf(buckets: readonly string[]): Promise<ReadonlyMap<ClusterNode, ReadonlySet<string>>> {
    const places = new Map<ClusterNode, ReadonlySet<string>>();
    for (const node of await this.cluster.masters()) places.set(node, new Set());
    const owners = await this.cluster.mastersOf(await Promise.all(buckets.map((name) => this.slotOf(name))));
    owners.forEach((node, at) => {
      if (node !== undefined) (places.get(node) as Set<string> | undefined)?.add(buckets[at] as string);
    });
    return places;
  }

  /** The slot of a bucket. */
  async slotOf(bucket: string): Promise<number> {
    const known = this.slots.get(bucket);
    if (known !== undefined) return known;
    const slot = await this.cluster.slotOf(keyOfBucket(bucket));
    this.slots.set(bucket, slot);
    return slot;
  }

  redis(node: ClusterNode): RedisNode {
    return this.redises.get(node) as RedisNode;
  }

  proxy(node: ClusterNode): ChaosProxy {
    return this.proxies.get(node) as ChaosProxy;
  }

  /** How often nodes that run have answered an error of that code, such as `MOVED`. */
  async errors(code: string): Promise<number> {
    const running = this.cluster.nodes.filter(({ isRunning }) => isRunning);
    const counts = await Promise.all(running.map((node) => this.redis(node).errors(code)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Ends a node as a crash does; nobody listens at its address. */
  async kill(node: ClusterNode): Promise<void> {
    await node.kill();
    await this.proxy(node).close();
  }

  async restart(node: ClusterNode): Promise<void> {
    await this.proxy(node).open();
    await node.restart();
  }

  /** Resolves once the node that serves a bucket takes writes and all masters know it, with when that was. */
  async serves(bucket: string): Promise<number> {
    const slot = await this.slotOf(bucket);
    await waitFor(
      `slot ${slot} to be served`,
      async () => {
        const node = await this.cluster.masterOf(slot);
        await this.redis(node).serves(`${keyOfBucket(bucket)}:serves`);
        for (const master of await this.cluster.masters()) {
          const owner = (await master.view()).find((line) => servesSlot(line, slot));
          if (owner?.id !== node.id) return undefined;
        }
        return true;
      },
      SEEN_MS,
    );
    return performance.now();
  }

  /** Cuts a node off from all others, which cannot tell that from its end; clients reach it still. */
  cutOff({ port }: ClusterNode): void {
    this.buses.cutOff(port);
  }

  /** All nodes reach each other again. */
  rejoin(): void {
    this.buses.heal();
  }

  /** Adds a master without slots. */
  async addNode(): Promise<ClusterNode> {
    const node = await this.cluster.addNode();
    await this.putProxyBefore(node);
    return node;
  }

  /** Takes a node out, which must serve no slot. */
  async removeNode(node: ClusterNode): Promise<void> {
    await this.cluster.removeNode(node);
    await this.proxy(node).close();
    this.proxies.delete(node);
    this.redises.delete(node);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.close()));
    await this.cluster.stop();
    await this.buses.stop();
  }

  private async putProxyBefore(node: ClusterNode): Promise<void> {
    this.redises.set(node, new RedisNode(node.server));
    this.proxies.set(node, await ChaosProxy.start(node.port, this.random, ANNOUNCED, node.port));
  }
}

/** A proxy before the bus of each node. */
class BusProxies {
  private readonly random: Random;
  private sources = 0;
  private readonly byPort = new Map<number, { readonly proxy: ChaosProxy; readonly source: string }>();

  constructor(random: Random) {
    this.random = random;
  }

  async put(port: number): Promise<AnnouncedBus> {
    const source = `${SOURCES}${++this.sources}`;
    const proxy = await ChaosProxy.start(port, this.random);
    this.byPort.set(port, { proxy, source });
    return { port: proxy.port, source };
  }

  /** Of the node whose clients connect to `port`. */
  cutOff(port: number): void {
    const own = this.byPort.get(port + BUS_OFFSET);
    if (own === undefined) throw new Error(`no node on port ${port}`);
    for (const { proxy } of this.byPort.values()) {
      proxy.do(proxy === own.proxy ? { kind: 'drop' } : { kind: 'drop', from: own.source });
    }
  }

  heal(): void {
    for (const { proxy } of this.byPort.values()) proxy.heal();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.byPort.values()].map(({ proxy }) => proxy.close()));
  }
}
