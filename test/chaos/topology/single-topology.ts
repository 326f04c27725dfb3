import { writeFileSync } from 'node:fs';
import type { Random } from '../../fuzz/random.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { FaultProxy } from '../fault-proxy.js';
import { RedisNode } from './redis-node.js';
import { allBucketsOn, type Topology } from './topology.js';

/** One Redis with persistence, behind a {@link FaultProxy}. weir reads the password from a file. */
export class SingleTopology implements Topology {
  readonly name = 'single';
  readonly isSharded = false;
  readonly master: RedisNode;
  readonly proxy: FaultProxy;
  private readonly folder = new TempDir();
  private readonly passwordFile: string;

  private constructor(node: RedisNode, proxy: FaultProxy) {
    this.master = node;
    this.proxy = proxy;
    this.passwordFile = this.folder.write('password', '');
  }

  static async start(random: Random): Promise<SingleTopology> {
    const node = await RedisNode.start({ args: ['--appendonly', 'yes', '--appendfsync', 'no'] });
    const topology = new SingleTopology(node, await FaultProxy.create(node.port, random));
    await topology.requirePassword('first');
    topology.writePassword('first');
    return topology;
  }

  get env(): NodeJS.ProcessEnv {
    return { REDIS_URL: `127.0.0.1:${this.proxy.port}`, REDIS_AUTH_FILE: this.passwordFile };
  }

  async nodesOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    return allBucketsOn(this.master, buckets);
  }

  /** Writes the password to the file that weir reads. */
  writePassword(password: string): void {
    writeFileSync(this.passwordFile, password);
  }

  /** Sets the password that Redis requires from new connections, until Redis restarts. */
  async requirePassword(password: string): Promise<void> {
    await this.master.command('CONFIG', 'SET', 'requirepass', password);
    this.master.password = password;
  }

  async stop(): Promise<void> {
    await this.proxy.close();
    await this.master.stop();
    this.folder.remove();
  }
}
