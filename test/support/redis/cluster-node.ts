import { type NodeLine, parseClusterNodes } from './cluster-view.js';
import { redisCommand } from './redis-command.js';
import type { RedisServer } from './redis-server.js';

/** A process of a Redis Cluster. It keeps its id and what it knows of the others when it is started again. */
export class ClusterNode {
  readonly server: RedisServer;
  readonly id: string;
  private readonly password: string;
  private running = true;

  private constructor(server: RedisServer, password: string, id: string) {
    this.server = server;
    this.password = password;
    this.id = id;
  }

  /** `server` is one that was started with `--cluster-enabled yes`. */
  static async of(server: RedisServer, password: string): Promise<ClusterNode> {
    const id = String(await redisCommand({ port: server.port, password }, 'CLUSTER', 'MYID'));
    return new ClusterNode(server, password, id);
  }

  get port(): number {
    return this.server.port;
  }

  /** As `REDIS_URL` names it. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** False from {@link kill} or {@link pause} until it goes on. */
  get isRunning(): boolean {
    return this.running;
  }

  /** One command to this node, on a connection of its own. Rejects with what it answers, or after 2 s. */
  command(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return redisCommand({ port: this.port, password: this.password }, name, ...args.map(String));
  }

  /** All nodes that it knows, itself as well. */
  async view(): Promise<readonly NodeLine[]> {
    return parseClusterNodes(String(await this.command('CLUSTER', 'NODES')));
  }

  /** A field of INFO or of CLUSTER INFO. */
  async field(name: string, ...command: readonly [string, string]): Promise<string | undefined> {
    const text = String(await this.command(...command));
    return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1];
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    this.running = false;
    await this.server.kill();
  }

  /** Starts it again after {@link kill}, without keys. */
  async restart(): Promise<void> {
    await this.server.restart();
    this.running = true;
  }

  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void {
    this.running = false;
    this.server.pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.server.resume();
    this.running = true;
  }
}
