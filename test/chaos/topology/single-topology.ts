import { writeFileSync } from 'node:fs';
import type { Random } from '../../fuzz/random.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { ChaosProxy } from '../fault-proxy.js';
import { RedisNode } from './redis-node.js';
import { decidedBy, type Topology } from './topology.js';

/** One Redis, which keeps its buckets in a file, behind a proxy of ours; weir reads its password from a file. */
export class SingleTopology implements Topology {
  readonly name = 'single';
  readonly isSharded = false;
  readonly master: RedisNode;
  readonly proxy: ChaosProxy;
  private readonly folder = new TempDir();
  private readonly passwordFile: string;

  private constructor(node: RedisNode, proxy: ChaosProxy) {
    this.master = node;
    this.proxy = proxy;
    this.passwordFile = this.folder.write('password', '');
  }

  static async start(random: Random): Promise<SingleTopology> {
    const node = await RedisNode.start({ args: ['--appendonly', 'yes', '--appendfsync', 'no'] });
    const topology = new SingleTopology(node, await ChaosProxy.start(node.port, random));
    await topology.requirePassword('first');
    topology.tellPassword('first');
    return topology;
  }

  get env(): NodeJS.ProcessEnv {
    return { REDIS_URL: `127.0.0.1:${this.proxy.port}`, REDIS_AUTH_FILE: this.passwordFile };
  }

  async decidersOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    return decidedBy(this.master, buckets);
  }

  /** What weir finds in its file. */
  tellPassword(password: string): void {
    writeFileSync(this.passwordFile, password);
  }

  /** What Redis wants from those who connect from now on. It survives no restart. */
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
