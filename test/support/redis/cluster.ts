import { freePorts } from '../process/free-port.js';
import { waitFor } from '../process/wait-for.js';
import { ClusterNode } from './cluster-node.js';
import { agreedOf, type NodeLine, servesSlot } from './cluster-view.js';
import { startRedis } from './redis-server.js';

/** Slots of every cluster. */
export const CLUSTER_SLOTS = 16_384;
/** What Redis adds to the port of a node for that of its bus. */
export const BUS_OFFSET = 10_000;
const STABLE_MS = 60_000;
/** Keys that are moved by one call. */
const KEYS_PER_MOVE = 100;

export interface StartClusterOptions {
  /** Masters, which share the slots evenly: 3. */
  readonly masters?: number;
  /** Replicas of each master: 0. */
  readonly replicas?: number;
  /** Further arguments of each redis-server. */
  readonly args?: readonly string[];
  /** Default: `redis-server` of tools.ts. */
  readonly binary?: string;
  /** How long a node may be silent before the others take it for dead, milliseconds: 1000. */
  readonly nodeTimeoutMs?: number;
  /** Whether all answer CLUSTERDOWN once one slot is served by nobody: false. */
  readonly requireFullCoverage?: boolean;
  /** What nodes want from clients and from each other: nothing. */
  readonly password?: string;
  /** Called with the port of the bus of a node before it starts: gives where the others find it instead. */
  readonly busBefore?: (port: number) => Promise<AnnouncedBus>;
}

/** What stands before the bus of a node. */
export interface AnnouncedBus {
  readonly port: number;
  /** The address of 127.0.0.0/8 that the node itself calls others from. */
  readonly source: string;
}

/** Starts a real Redis Cluster on 127.0.0.1 that keeps no keys on disk; resolves when it serves all slots. */
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

/** A cluster of real processes, commanded as `redis-cli --cluster` does it. Stop it. */
export class RedisCluster {
  private readonly options: StartClusterOptions;
  private members: ClusterNode[] = [];
  private readonly buses = new Map<number, number>();

  constructor(options: StartClusterOptions) {
    this.options = options;
  }

  /** Masters of the start come first, in the order of their slots; then replicas; then nodes that were added. */
  get nodes(): readonly ClusterNode[] {
    return this.members;
  }

  /** All nodes as `REDIS_URL` names them. */
  get url(): string {
    return this.members.map(({ address }) => address).join(',');
  }

  /** Starts the nodes and makes a cluster of them. */
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
        // It is not known to the new one until they have shaken hands.
        await waitFor('a replica to know its master', async () => {
          return (await node.command('CLUSTER', 'REPLICATE', id)) === 'OK';
        });
      }),
    );
    await this.waitStable();
  }

  /** The slot of a key. */
  async slotOf(key: string): Promise<number> {
    return Number(await this.running()[0]?.command('CLUSTER', 'KEYSLOT', key));
  }

  /** Running masters that serve slots; not those that only believe so, since another one has taken over. */
  async masters(): Promise<ClusterNode[]> {
    const lines = await this.ownLines();
    const isFirst = ({ epoch }: NodeLine, slot: number): boolean =>
      !lines.some(([, other]) => other.epoch > epoch && servesSlot(other, slot));
    return lines
      .filter(([, line]) => line.isMaster && line.slots.some(([slot]) => isFirst(line, slot)))
      .map(([node]) => node);
  }

  /** The running node that serves a slot; of several that claim it the newest to do so. Throws where none does. */
  async masterOf(slot: number): Promise<ClusterNode> {
    const [node] = await this.mastersOf([slot]);
    if (node === undefined) throw new Error(`no running node serves slot ${slot}`);
    return node;
  }

  /** {@link masterOf} for many at once; undefined for those that no running node serves. */
  async mastersOf(slots: readonly number[]): Promise<(ClusterNode | undefined)[]> {
    const lines = await this.ownLines();
    lines.sort(([, one], [, other]) => other.epoch - one.epoch);
    return slots.map((slot) => lines.find(([, line]) => servesSlot(line, slot))?.[0]);
  }

  /** Running replicas of a node. */
  async replicasOf({ id }: ClusterNode): Promise<ClusterNode[]> {
    const lines = await this.ownLines();
    return lines.filter(([, { isMaster, masterId }]) => !isMaster && masterId === id).map(([node]) => node);
  }

  /** Begins to move a slot: its keys are still where they were, new ones go to `to` (ASK). */
  async beginMove(slot: number, to: ClusterNode): Promise<void> {
    const from = await this.masterOf(slot);
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  }

  /** Moves keys of a slot that {@link beginMove} was called for: `most` of them, or all. Resolves with how many. */
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

  /** Ends a move: `to` serves the slot, and all masters are told, or those of `told` only. */
  async endMove(slot: number, to: ClusterNode, told?: readonly ClusterNode[]): Promise<void> {
    const from = await this.masterOf(slot);
    const others = told ?? (await this.masters());
    for (const node of new Set([to, from, ...others])) {
      await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id).catch((error: Error) => {
        // A master that hears of it first, and had no other slot, has become a replica of `to` already.
        if (node === to || !error.message.includes('only with masters')) throw error;
      });
    }
  }

  /** Moves a slot with its keys. Resolves with how many these were. */
  async moveSlot(slot: number, to: ClusterNode): Promise<number> {
    if ((await this.masterOf(slot)) === to) return 0;
    await this.beginMove(slot, to);
    const moved = await this.moveKeys(slot, to);
    await this.endMove(slot, to);
    return moved;
  }

  /** Kills the master of a slot, and gives it. */
  async killMaster(slot: number): Promise<ClusterNode> {
    const node = await this.masterOf(slot);
    await node.kill();
    return node;
  }

  /** Resolves with the node that has taken over a slot from `old`. */
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
   * Has a replica take over from the master of a slot: with its help, without it (FORCE), or without asking any other
   * master (TAKEOVER). Resolves with the replica once it serves.
   */
  async failover(slot: number, how?: 'FORCE' | 'TAKEOVER'): Promise<ClusterNode> {
    const old = await this.masterOf(slot);
    const [replica] = await this.replicasOf(old);
    if (replica === undefined) throw new Error(`${old.address} has no replica`);
    await replica.command('CLUSTER', 'FAILOVER', ...(how === undefined ? [] : [how]));
    return this.successorOf(old, slot);
  }

  /** Adds a master without slots; resolves when all know it. */
  async addNode(): Promise<ClusterNode> {
    const [port] = (await freePorts(1, BUS_OFFSET)) as [number];
    const node = await this.start(port);
    this.members.push(node);
    await this.introduce([node, ...this.running().filter((one) => one !== node)]);
    await this.waitStable();
    return node;
  }

  /** Takes a node out, which must serve no slot, and ends it. */
  async removeNode(node: ClusterNode): Promise<void> {
    if ((await this.masters()).includes(node)) throw new Error(`${node.address} serves slots`);
    this.members = this.members.filter((one) => one !== node);
    for (const one of this.running()) await one.command('CLUSTER', 'FORGET', node.id);
    await node.server.stop();
    await this.waitStable();
  }

  /**
   * Resolves when all that run are well, agree on who serves what, and no slot is on its way; replicas are in step with
   * their masters then. Nodes that are dead must be held for dead.
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
    const { args = [], binary, nodeTimeoutMs = 1000, requireFullCoverage = false, password } = this.options;
    const bus = await this.options.busBefore?.(port + BUS_OFFSET);
    this.buses.set(port, bus?.port ?? port + BUS_OFFSET);
    const announced =
      bus === undefined
        ? []
        : [
            ...['--cluster-announce-ip', '127.0.0.1', '--cluster-announce-bus-port', String(bus.port)],
            // Protected mode knows 127.0.0.1 only as an address of the same machine.
            ...['--bind-source-addr', bus.source, '--protected-mode', 'no'],
          ];
    const server = await startRedis({
      port,
      ...(binary !== undefined && { binary }),
      args: [
        ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)],
        ...['--cluster-require-full-coverage', requireFullCoverage ? 'yes' : 'no'],
        // Replicas stay with their masters, are promoted however old their data, and sync at once.
        ...['--cluster-migration-barrier', '100', '--cluster-replica-validity-factor', '0'],
        ...['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'],
        ...(password === undefined ? [] : ['--requirepass', password, '--masterauth', password]),
        ...announced,
        ...args,
      ],
    });
    return ClusterNode.of(server, password ?? '');
  }

  /** Has the first of some nodes meet the others; resolves when each knows all. */
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

  /** What each running node says of itself; of those that do not answer nothing. */
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
      seen.add(agreedOf(lines));
      if (seen.size > 1) return undefined;
      const link = await node.field('master_link_status', 'INFO', 'replication');
      if (link !== undefined && link !== 'up') return undefined;
    }
    return true;
  }
}

/** The slots of master number `at`. */
function shareOf(at: number, masters: number): number[] {
  const from = Math.floor((CLUSTER_SLOTS * at) / masters);
  const to = Math.floor((CLUSTER_SLOTS * (at + 1)) / masters);
  return Array.from({ length: to - from }, (_, index) => from + index);
}
