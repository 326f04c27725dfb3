import { type NodeLine, parseClusterNodes } from './cluster-view.js';
import { redisCommand } from './redis-command.js';
import type { RedisServer } from './redis-server.js';

/** A process of a Redis Cluster. It keeps its id and its knowledge of other nodes across restarts. */
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

  /** `server` must have been started with `--cluster-enabled yes`. */
  static async of(server: RedisServer, password: string): Promise<ClusterNode> {
    const id = String(await redisCommand({ port: server.port, password }, 'CLUSTER', 'MYID'));
    return new ClusterNode(server, password, id);
  }

  get port(): number {
    return this.server.port;
  }

  /** Address in the form of `REDIS_URL`. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** False after {@link kill} or {@link pause}, until the node runs again. */
  get isRunning(): boolean {
    return this.running;
  }

  /** Sends one command on its own connection. Rejects with the error of Redis, or after 20 s. */
  command(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return redisCommand({ port: this.port, password: this.password }, name, ...args.map(String));
  }

  /** Returns all nodes that this node knows, including itself. */
  async view(): Promise<readonly NodeLine[]> {
    return parseClusterNodes(String(await this.command('CLUSTER', 'NODES')));
  }

  /** Returns a field of INFO or of CLUSTER INFO. */
  async field(name: string, ...command: readonly [string, string]): Promise<string | undefined> {
    const text = String(await this.command(...command));
    return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1];
  }

  /** Kills the process, as a crash does. */
  async kill(): Promise<void> {
    this.running = false;
    await this.server.kill();
  }

  /** Starts the process again after {@link kill}, without keys. */
  async restart(): Promise<void> {
    await this.server.restart();
    this.running = true;
  }

  /** Sends SIGSTOP: connections remain open, but the process does not answer. */
  pause(): void {
    this.running = false;
    this.server.pause();
  }

  /** Sends SIGCONT. */
  resume(): void {
    this.server.resume();
    this.running = true;
  }
}
