import { freePorts } from '../../support/process/free-port.js';
import { type StartedProcess, startProcess } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { redisCommand } from '../../support/redis/redis-command.js';
import { RedisNode } from './redis-node.js';
import { decidedBy, type Topology } from './topology.js';

const NAME = 'mymaster';
const PASSWORD = 'of-the-sentinels';
const QUORUM = 2;
/** How long a master may be silent before a sentinel takes it for dead, and how long a failover may take. */
const DOWN_AFTER_MS = 500;
const FAILOVER_MS = 3000;
const WHOLE_MS = 60_000;
/** Sentinels look for replicas every ten seconds, and tell each other of a failover every two. */
const AGREED_MS = 25_000;

/** Three sentinels with a password, a master and two replicas, which keep nothing on disk. */
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
    await topology.untilWhole();
    return topology;
  }

  get env(): NodeJS.ProcessEnv {
    const sentinels = this.ports.map((port) => `127.0.0.1:${port}`).join(',');
    return { REDIS_TYPE: 'SENTINEL', REDIS_URL: `${NAME},${sentinels}`, REDIS_SENTINEL_AUTH: PASSWORD };
  }

  async decidersOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    return decidedBy(this.master, buckets);
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

  /** It goes on with what it had written down. */
  restartSentinel(at: number): void {
    this.sentinels[at] = startProcess(toolPath('redis-server'), [this.configOf(at), '--sentinel']);
  }

  /** One command to a sentinel. */
  ask(at: number, name: string, ...args: readonly string[]): Promise<unknown> {
    return redisCommand({ port: this.ports[at] as number, password: PASSWORD }, name, ...args);
  }

  /** Resolves when another Redis than `old` is a master that writes and that a sentinel names, with when it was. */
  async promoted(old: RedisNode): Promise<number> {
    await waitFor(
      'a replica to be promoted',
      async () => {
        for (const node of this.nodes.filter((one) => one !== old)) {
          const role = (await node.command('ROLE').catch(() => [])) as readonly string[];
          if (role[0] !== 'master') continue;
          this.masterPort = node.port;
          return true;
        }
        return undefined;
      },
      WHOLE_MS,
    ).catch((error: Error) => {
      const told = this.sentinels.map((sentinel) => sentinel.lines().slice(-12).join('\n'));
      throw new Error(`${error.message}; the sentinels last said\n${told.join('\n\n')}`);
    });
    await waitFor(
      'a sentinel to name the new master',
      async () => ((await this.announced()) === this.masterPort ? true : undefined),
      WHOLE_MS,
    );
    return this.master.serves();
  }

  /** The port of the master that sentinels name: the one that is known already, if one of them does. */
  private async announced(): Promise<number | undefined> {
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

  /** Has a sentinel promote a replica; resolves once it agrees, which it does not while it doubts the replicas. */
  async forceFailover(first: number): Promise<void> {
    let at = first;
    await waitFor(
      'a sentinel to begin a failover',
      // One that was stopped a while ago takes part in nothing for half a minute: then another one is asked.
      async () => (await this.ask(at++ % this.ports.length, 'SENTINEL', 'FAILOVER', NAME)) === 'OK',
      WHOLE_MS,
    );
  }

  /** Makes `node` the master of the others and of the sentinels, as a person would who trusts no failover. */
  async promoteByHand(node: RedisNode): Promise<void> {
    const sentinels = [...this.ports.keys()];
    // All of them first: one that still knows the old master would tell the others of it.
    for (const at of sentinels) await this.ask(at, 'SENTINEL', 'REMOVE', NAME).catch(() => {});
    if (node !== this.master) await this.master.command('REPLICAOF', '127.0.0.1', String(node.port));
    await node.command('REPLICAOF', 'NO', 'ONE');
    this.masterPort = node.port;
    for (const replica of this.replicas) await this.follow(replica);
    // A sentinel looks for replicas when it first meets their master, and then every ten seconds.
    await waitFor('the replicas to follow', async () => {
      const role = (await node.command('ROLE')) as readonly [string, number, readonly unknown[]];
      return role[2].length === 2 ? true : undefined;
    });
    for (const at of sentinels) {
      await this.ask(at, 'SENTINEL', 'MONITOR', NAME, '127.0.0.1', String(node.port), String(QUORUM));
      for (const [setting, value] of this.settings())
        await this.ask(at, 'SENTINEL', 'SET', NAME, setting, value);
    }
  }

  /** Makes a Redis a replica of the master. */
  async follow(node: RedisNode): Promise<void> {
    await node.command('REPLICAOF', '127.0.0.1', String(this.masterPort));
  }

  /**
   * Resolves when the master has its replicas, and all sentinels know all of it. Where a pause of the machine has left
   * them with two masters that each of them holds for the newest, they are told which it is.
   */
  async untilWhole(): Promise<void> {
    await this.becomesWhole(AGREED_MS).catch(() => this.promoteByHand(this.master));
    await this.becomesWhole(WHOLE_MS);
  }

  private async becomesWhole(withinMs: number): Promise<void> {
    await waitFor(
      'a master with two replicas that the sentinels know',
      async () => {
        // A failover that did not come to its end is done again, and may choose another one.
        this.masterPort = (await this.announced()) ?? this.masterPort;
        const role = (await this.master.command('ROLE')) as readonly [string, number, readonly unknown[]];
        if (role[0] !== 'master' || role[2].length < 2) return undefined;
        for (const replica of this.replicas) {
          if (((await replica.command('ROLE')) as readonly string[])[3] !== 'connected') return undefined;
        }
        const know = await Promise.all(this.ports.map((_, at) => this.knowsAll(at).catch(() => false)));
        return know.every(Boolean) ? true : undefined;
      },
      withinMs,
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

  private async knowsAll(at: number): Promise<boolean> {
    const text = String(await this.ask(at, 'INFO', 'sentinel'));
    return new RegExp(
      `^master0:name=${NAME},status=ok,address=127.0.0.1:${this.masterPort},slaves=2,sentinels=3`,
      'm',
    ).test(text);
  }
}
