import { freePorts } from '../../support/process/free-port.js';
import { type StartedProcess, startProcess } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { RedisNode } from './redis-node.js';
import { allBucketsOn, type Topology } from './topology.js';

const NAME = 'mymaster';
const PASSWORD = 'of-the-sentinels';
const QUORUM = 2;
/** Time after which a sentinel considers a silent master down, and timeout of a failover. */
const DOWN_AFTER_MS = 500;
const FAILOVER_MS = 3000;
const HEALTH_TIMEOUT_MS = 60_000;
/** Sentinels search for replicas every ten seconds, and exchange messages about failovers every two seconds. */
const AGREEMENT_MS = 25_000;

/** Three sentinels with a password, a master and two replicas, without persistence. */
export class SentinelTopology implements Topology {
  readonly name = 'sentinel';
  readonly isSharded = false;
  private readonly nodes: readonly RedisNode[];
  private readonly ports: readonly number[];
  private readonly sentinels: StartedProcess[] = [];
  private readonly folder = new TempDir();
  private masterPort: number;

  private constructor(nodes: readonly RedisNode[], ports: readonly number[]) {
    this.nodes = nodes;
    this.ports = ports;
    this.masterPort = (nodes[0] as RedisNode).port;
  }

  static async start(): Promise<SentinelTopology> {
    const common = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];
    const master = await RedisNode.start({ args: common });
    const replicas = await Promise.all(
      [1, 2].map(() => RedisNode.start({ args: [...common, '--replicaof', `127.0.0.1 ${master.port}`] })),
    );
    const topology = new SentinelTopology([master, ...replicas], await freePorts(3));
    topology.ports.forEach((port, at) => {
      topology.startSentinel(port, at);
    });
    await topology.waitUntilHealthy();
    return topology;
  }

  get env(): NodeJS.ProcessEnv {
    const sentinels = this.ports.map((port) => `127.0.0.1:${port}`).join(',');
    return { REDIS_TYPE: 'SENTINEL', REDIS_URL: `${NAME},${sentinels}`, REDIS_SENTINEL_AUTH: PASSWORD };
  }

  async nodesOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    return allBucketsOn(this.master, buckets);
  }

  /**
   * Returns the newest configuration epoch of the sentinels. Two sentinels that each notice a dead master may promote
   * one replica after the other.
   */
  async failoverEpoch(): Promise<number> {
    const epochs = await Promise.all(
      this.ports.map(async (_, at) => {
        const fields = (await this.command(at, 'SENTINEL', 'MASTER', NAME).catch(() => [])) as string[];
        return Number(fields[fields.indexOf('config-epoch') + 1] ?? 0);
      }),
    );
    return Math.max(...epochs.filter(Number.isFinite));
  }

  get master(): RedisNode {
    return this.nodes.find(({ port }) => port === this.masterPort) as RedisNode;
  }

  get replicas(): readonly RedisNode[] {
    return this.nodes.filter(({ port }) => port !== this.masterPort);
  }

  async killSentinel(at: number): Promise<void> {
    await this.sentinels[at]?.stop('SIGKILL');
  }

  /** Restarts a sentinel with its saved state. */
  restartSentinel(at: number): void {
    this.sentinels[at] = startProcess(toolPath('redis-server'), [this.configOf(at), '--sentinel']);
  }

  /** Sends a command to a sentinel. */
  command(at: number, name: string, ...args: readonly string[]): Promise<unknown> {
    return redisCommand({ port: this.ports[at] as number, password: PASSWORD }, name, ...args);
  }

  /** Waits until a node other than `old` is the master, and a sentinel returns its address. Resolves with the time. */
  async waitForPromotion(old: RedisNode): Promise<number> {
    await waitFor(
      'a replica to be waitForPromotion',
      async () => {
        for (const node of this.nodes.filter((one) => one !== old)) {
          const role = (await node.command('ROLE').catch(() => [])) as readonly string[];
          if (role[0] !== 'master') continue;
          this.masterPort = node.port;
          return true;
        }
        return undefined;
      },
      HEALTH_TIMEOUT_MS,
    ).catch((error: Error) => {
      const logs = this.sentinels.map((sentinel) => sentinel.lines().slice(-12).join('\n'));
      throw new Error(`${error.message}; the last lines of the sentinels:\n${logs.join('\n\n')}`);
    });
    await waitFor(
      'a sentinel to return the new master',
      async () => ((await this.findAnnouncedPort()) === this.masterPort ? true : undefined),
      HEALTH_TIMEOUT_MS,
    );
    return this.master.waitUntilWritable();
  }

  /** Returns the port of the master according to the sentinels. The current master has precedence if they disagree. */
  private async findAnnouncedPort(): Promise<number | undefined> {
    const ports = await Promise.all(
      this.ports.map(async (port) => {
        const target = { port, password: PASSWORD, patienceMs: 300 };
        const address = await redisCommand(target, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME).catch(
          () => [],
        );
        return Number((address as readonly string[])[1]);
      }),
    );
    return ports.find((port) => port === this.masterPort) ?? ports.find((port) => port > 0);
  }

  /** Starts a failover on a sentinel. Sentinels refuse a failover while they consider the replicas unusable. */
  async forceFailover(first: number): Promise<void> {
    let at = first;
    await waitFor(
      'a sentinel to begin a failover',
      // A restarted sentinel refuses failovers for half a minute, so each attempt uses another sentinel.
      async () => (await this.command(at++ % this.ports.length, 'SENTINEL', 'FAILOVER', NAME)) === 'OK',
      HEALTH_TIMEOUT_MS,
    );
  }

  /** Makes `node` the master, and reconfigures the replicas and sentinels, as an operator would do manually. */
  async promoteManually(node: RedisNode): Promise<void> {
    const sentinels = [...this.ports.keys()];
    // All sentinels must forget the old master first, because a sentinel sends its master to the others.
    for (const at of sentinels) await this.command(at, 'SENTINEL', 'REMOVE', NAME).catch(() => {});
    if (node !== this.master) await this.master.command('REPLICAOF', '127.0.0.1', String(node.port));
    await node.command('REPLICAOF', 'NO', 'ONE');
    this.masterPort = node.port;
    for (const replica of this.replicas) await this.makeReplica(replica);
    // A sentinel searches for replicas when it first connects to their master, and then only every ten seconds.
    await waitFor('the replicas to makeReplica', async () => {
      const role = (await node.command('ROLE')) as readonly [string, number, readonly unknown[]];
      return role[2].length === 2 ? true : undefined;
    });
    for (const at of sentinels) {
      await this.command(at, 'SENTINEL', 'MONITOR', NAME, '127.0.0.1', String(node.port), String(QUORUM));
      for (const [setting, value] of this.settings())
        await this.command(at, 'SENTINEL', 'SET', NAME, setting, value);
    }
  }

  /** Makes a Redis a replica of the master. */
  async makeReplica(node: RedisNode): Promise<void> {
    await node.command('REPLICAOF', '127.0.0.1', String(this.masterPort));
  }

  /**
   * Waits until the master has its replicas, and all sentinels have found all nodes. After a pause of the machine,
   * sentinels may disagree about the master. Then the current master is promoted manually.
   */
  async waitUntilHealthy(): Promise<void> {
    await this.waitForHealth(AGREEMENT_MS).catch(() => this.promoteManually(this.master));
    await this.waitForHealth(HEALTH_TIMEOUT_MS);
  }

  private async waitForHealth(timeoutMs: number): Promise<void> {
    await waitFor(
      'a master with two replicas that the sentinels know',
      async () => {
        // Sentinels repeat a failed failover, and may then choose another master.
        this.masterPort = (await this.findAnnouncedPort()) ?? this.masterPort;
        const role = (await this.master.command('ROLE')) as readonly [string, number, readonly unknown[]];
        if (role[0] !== 'master' || role[2].length < 2) return undefined;
        for (const replica of this.replicas) {
          if (((await replica.command('ROLE')) as readonly string[])[3] !== 'connected') return undefined;
        }
        const informed = await Promise.all(this.ports.map((_, at) => this.isInformed(at).catch(() => false)));
        return informed.every(Boolean) ? true : undefined;
      },
      timeoutMs,
    );
  }

  async stop(): Promise<void> {
    for (const sentinel of this.sentinels) await sentinel.stop('SIGKILL');
    for (const node of this.nodes) await node.stop();
    this.folder.remove();
  }

  private settings(): [setting: string, value: string][] {
    return [
      ['down-after-milliseconds', String(DOWN_AFTER_MS)],
      ['failover-timeout', String(FAILOVER_MS)],
      ['parallel-syncs', '2'],
    ];
  }

  private startSentinel(port: number, at: number): void {
    const settings = this.settings().map(([setting, value]) => `sentinel ${setting} ${NAME} ${value}`);
    this.folder.write(
      `sentinel${at}/sentinel.conf`,
      [
        ...[`port ${port}`, 'bind 127.0.0.1', `dir ${this.folder.join(`sentinel${at}`)}`],
        ...[`requirepass ${PASSWORD}`, `sentinel monitor ${NAME} 127.0.0.1 ${this.masterPort} ${QUORUM}`],
        ...settings,
        '',
      ].join('\n'),
    );
    this.restartSentinel(at);
  }

  private configOf(at: number): string {
    return this.folder.join(`sentinel${at}`, 'sentinel.conf');
  }

  /** Returns whether a sentinel has found the master, both replicas and the other sentinels. */
  private async isInformed(at: number): Promise<boolean> {
    const text = String(await this.command(at, 'INFO', 'sentinel'));
    return new RegExp(
      `^master0:name=${NAME},status=ok,address=127.0.0.1:${this.masterPort},slaves=2,sentinels=3`,
      'm',
    ).test(text);
  }
}
