import { freePorts } from '../process/free-port.js';
import { waitFor } from '../process/wait-for.js';
import { ClusterNode } from './cluster-node.js';
import { type NodeLine, servesSlot, sharedFacts } from './cluster-view.js';
import { startRedis } from './redis-server.js';

/** Number of slots of a Redis Cluster. */
const CLUSTER_SLOTS = 16_384;
/** Offset of the bus port from the port of a node. */
export const BUS_OFFSET = 10_000;
const STABLE_MS = 60_000;
/** Number of keys that one call moves. */
const KEYS_PER_MOVE = 100;

export interface StartClusterOptions {
  /** Number of masters, which share the slots evenly; default 3. */
  readonly masters?: number;
  /** Replicas of each master; default 0. */
  readonly replicas?: number;
  /** Further arguments of each redis-server. */
  readonly args?: readonly string[];
  /** Default: `redis-server` of tools.ts. */
  readonly binary?: string;
  /** Time after which the other nodes consider a silent node failed, in milliseconds; default 1000. */
  readonly nodeTimeoutMs?: number;
  /** Password for clients and other nodes; default none. */
  readonly password?: string;
  /**
   * Called with the bus port of a node before the node starts. Resolves with the address that other nodes use instead.
   */
  readonly busBefore?: (port: number) => Promise<AnnouncedBus>;
}

/** A proxy in front of the bus of a node. */
export interface AnnouncedBus {
  readonly port: number;
  /** Address in 127.0.0.0/8 from which the node connects to others. */
  readonly source: string;
}

/** Starts a real Redis Cluster on 127.0.0.1 without persistence; resolves when it serves all slots. */
export async function startCluster(options: StartClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, replicas = 0 } = options;
  const cluster = new RedisCluster(options);
  try {
    await cluster.form(masters, replicas);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** A cluster of real processes, managed with the commands of `redis-cli --cluster`. Stop it after use. */
export class RedisCluster {
  private readonly options: StartClusterOptions;
  private members: ClusterNode[] = [];
  private readonly buses = new Map<number, number>();

  constructor(options: StartClusterOptions) {
    this.options = options;
  }

  /** Initial masters in the order of their slots, then replicas, then nodes that were added later. */
  get nodes(): readonly ClusterNode[] {
    return this.members;
  }

  /** All nodes in the form of `REDIS_URL`. */
  get url(): string {
    return this.members.map(({ address }) => address).join(',');
  }

  /** Starts the nodes and joins them into a cluster. */
  async form(masters: number, replicas: number): Promise<void> {
    const ports = await freePorts(masters * (1 + replicas), BUS_OFFSET);
    this.members = await Promise.all(ports.map((port) => this.start(port)));
    const first = this.members.slice(0, masters);
    await Promise.all(
      this.members.map(async (node, at) => {
        await node.command('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
        if (at < masters) await node.command('CLUSTER', 'ADDSLOTS', ...shareOf(at, masters));
      }),
    );
    await this.introduce(this.members);
    await Promise.all(
      this.members.slice(masters).map(async (node, at) => {
        const { id } = first[at % masters] as ClusterNode;
        // The new node knows the master only after their handshake.
        await waitFor('a replica to know its master', async () => {
          return (await node.command('CLUSTER', 'REPLICATE', id)) === 'OK';
        });
      }),
    );
    await this.waitStable();
  }

  /** Returns the slot of a key. */
  async slotOf(key: string): Promise<number> {
    return Number(await this.running()[0]?.command('CLUSTER', 'KEYSLOT', key));
  }

  /** Returns running masters that serve slots, without those that do not know yet that another node replaced them. */
  async masters(): Promise<ClusterNode[]> {
    const lines = await this.ownLines();
    const isFirst = ({ epoch }: NodeLine, slot: number): boolean =>
      !lines.some(([, other]) => other.epoch > epoch && servesSlot(other, slot));
    return lines
      .filter(([, line]) => line.isMaster && line.slots.some(([slot]) => isFirst(line, slot)))
      .map(([node]) => node);
  }

  /**
   * Returns the running node that serves a slot. If several nodes claim it, the one with the newest claim is returned.
   * Throws if none serves it.
   */
  async masterOf(slot: number): Promise<ClusterNode> {
    const [node] = await this.mastersOf([slot]);
    if (node === undefined) throw new Error(`no running node serves slot ${slot}`);
    return node;
  }

  /** Same as {@link masterOf} for several slots; undefined for slots that no running node serves. */
  async mastersOf(slots: readonly number[]): Promise<(ClusterNode | undefined)[]> {
    const lines = await this.ownLines();
    lines.sort(([, one], [, other]) => other.epoch - one.epoch);
    return slots.map((slot) => lines.find(([, line]) => servesSlot(line, slot))?.[0]);
  }

  /** Returns the running replicas of a node. */
  async replicasOf({ id }: ClusterNode): Promise<ClusterNode[]> {
    const lines = await this.ownLines();
    return lines.filter(([, { isMaster, masterId }]) => !isMaster && masterId === id).map(([node]) => node);
  }

  /** Starts to move a slot: its existing keys remain, and new keys are sent to `to` (ASK). */
  async beginMove(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.masterOf(slot);
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  }

  /** Moves at most `most` keys of a slot after {@link beginMove}. Resolves with the number of moved keys. */
  async moveKeys(slot: number, to: ClusterNode, most = Number.POSITIVE_INFINITY): Promise<number> {
    const { password } = this.options;
    const from = await this.masterOf(slot);
    const auth = password === undefined ? [] : ['AUTH', password];
    for (let moved = 0; ; ) {
      const wanted = Math.min(KEYS_PER_MOVE, most - moved);
      const keys = (await from.command('CLUSTER', 'GETKEYSINSLOT', slot, wanted)) as string[];
      if (keys.length === 0) return moved;
      const target = ['127.0.0.1', to.port, '', 0, 5000, 'REPLACE'] as const;
      await from.command('MIGRATE', ...target, ...auth, 'KEYS', ...keys);
      moved += keys.length;
    }
  }

  /** Ends a move: `to` serves the slot. All masters are informed, or only those in `told`. */
  async endMove(slot: number, to: ClusterNode, told?: readonly ClusterNode[]): Promise<void> {
    const from = await this.masterOf(slot);
    const others = told ?? (await this.masters());
    for (const node of new Set([to, from, ...others])) {
      await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id).catch((error: Error) => {
        // A master without other slots may already have become a replica of `to`.
        if (node === to || !error.message.includes('only with masters')) throw error;
      });
    }
  }

  /** Moves a slot with its keys. Resolves with the number of keys. */
  async moveSlot(slot: number, to: ClusterNode): Promise<number> {
    if ((await this.masterOf(slot)) === to) return 0;
    await this.beginMove(slot, to);
    const moved = await this.moveKeys(slot, to);
    await this.endMove(slot, to);
    return moved;
  }

  /** Resolves with the node that took over a slot from `old`. */
  async successorOf(old: ClusterNode, slot: number): Promise<ClusterNode> {
    return waitFor(
      `slot ${slot} to be served by another one`,
      async () => {
        const node = await this.masterOf(slot);
        return node === old ? undefined : node;
      },
      STABLE_MS,
    );
  }

  /**
   * Promotes a replica of a slot's master: with the master's help, without it (FORCE), or without a vote (TAKEOVER).
   * Resolves with the replica once it serves the slot.
   */
  async failover(slot: number, how?: 'FORCE' | 'TAKEOVER'): Promise<ClusterNode> {
    const old = await this.masterOf(slot);
    const [replica] = await this.replicasOf(old);
    if (replica === undefined) throw new Error(`${old.address} has no replica`);
    await replica.command('CLUSTER', 'FAILOVER', ...(how === undefined ? [] : [how]));
    return this.successorOf(old, slot);
  }

  /** Adds a master without slots; resolves when all nodes know it. */
  async addNode(): Promise<ClusterNode> {
    const [port] = (await freePorts(1, BUS_OFFSET)) as [number];
    const node = await this.start(port);
    this.members.push(node);
    await this.introduce([node, ...this.running().filter((one) => one !== node)]);
    await this.waitStable();
    return node;
  }

  /** Removes and stops a node, which must not serve any slot. */
  async removeNode(node: ClusterNode): Promise<void> {
    if ((await this.masters()).includes(node)) throw new Error(`${node.address} serves slots`);
    this.members = this.members.filter((one) => one !== node);
    for (const one of this.running()) await one.command('CLUSTER', 'FORGET', node.id);
    await node.server.stop();
    await this.waitStable();
  }

  /**
   * Resolves when all running nodes are healthy and agree on the slots, no slot is moving, and replicas are
   * synchronised with their masters. The other nodes must consider stopped nodes failed.
   */
  async waitStable(): Promise<void> {
    await waitFor('all nodes of the cluster to agree', () => this.isStable(), STABLE_MS).catch(
      async (error: Error) => {
        const told = await Promise.all(
          this.running().map((node) => node.command('CLUSTER', 'NODES').catch(String)),
        );
        throw new Error(`${error.message}; they say\n${told.join('\n')}`);
      },
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map(({ server }) => server.stop()));
  }

  private running(): ClusterNode[] {
    return this.members.filter(({ isRunning }) => isRunning);
  }

  private async start(port: number): Promise<ClusterNode> {
    const { args = [], binary, nodeTimeoutMs = 1000, password } = this.options;
    const bus = await this.options.busBefore?.(port + BUS_OFFSET);
    this.buses.set(port, bus?.port ?? port + BUS_OFFSET);
    const announced =
      bus === undefined
        ? []
        : [
            ...['--cluster-announce-ip', '127.0.0.1', '--cluster-announce-bus-port', String(bus.port)],
            // Protected mode accepts only 127.0.0.1 as a local address.
            ...['--bind-source-addr', bus.source, '--protected-mode', 'no'],
          ];
    const server = await startRedis({
      port,
      ...(binary !== undefined && { binary }),
      args: [
        ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)],
        // The other slots stay available if one is not served.
        ...['--cluster-require-full-coverage', 'no'],
        // Replicas stay with their masters, can be promoted however old their data is, and sync at once.
        ...['--cluster-migration-barrier', '100', '--cluster-replica-validity-factor', '0'],
        ...['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'],
        ...(password === undefined ? [] : ['--requirepass', password, '--masterauth', password]),
        ...announced,
        ...args,
      ],
    });
    return ClusterNode.of(server, password ?? '');
  }

  /** Introduces the first node to the others; resolves when each node knows all nodes. */
  private async introduce([first, ...others]: readonly ClusterNode[]): Promise<void> {
    for (const { port } of others) {
      await first?.command('CLUSTER', 'MEET', '127.0.0.1', port, this.buses.get(port) as number);
    }
    await waitFor('the nodes of the cluster to know each other', async () => {
      for (const node of this.running()) {
        const known = (await node.view()).filter(({ isFailed }) => !isFailed);
        if (known.length < this.running().length) return undefined;
      }
      return true;
    });
  }

  /** Returns each running node's description of itself; nodes that do not answer are left out. */
  private async ownLines(): Promise<[ClusterNode, NodeLine][]> {
    const found = await Promise.all(
      this.running().map(async (node): Promise<[ClusterNode, NodeLine][]> => {
        const line = (await node.view().catch(() => [])).find(({ isMyself }) => isMyself);
        return line === undefined ? [] : [[node, line]];
      }),
    );
    return found.flat();
  }

  private async isStable(): Promise<true | undefined> {
    const running = this.running();
    const seen = new Set<string>();
    for (const node of running) {
      if ((await node.field('cluster_state', 'CLUSTER', 'INFO')) !== 'ok') return undefined;
      const lines = await node.view();
      if (lines.some(({ isMyself, isMoving }) => isMyself && isMoving)) return undefined;
      if (lines.filter(({ isFailed }) => !isFailed).length !== running.length) return undefined;
      seen.add(sharedFacts(lines));
      if (seen.size > 1) return undefined;
      const link = await node.field('master_link_status', 'INFO', 'replication');
      if (link !== undefined && link !== 'up') return undefined;
    }
    return true;
  }
}

/** Returns the slots of the master with index `at`. */
function shareOf(at: number, masters: number): number[] {
  const from = Math.floor((CLUSTER_SLOTS * at) / masters);
  const to = Math.floor((CLUSTER_SLOTS * (at + 1)) / masters);
  return Array.from({ length: to - from }, (_, index) => from + index);
}
