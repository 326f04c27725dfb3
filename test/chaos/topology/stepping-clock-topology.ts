import { chmodSync, writeFileSync } from 'node:fs';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath, toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { RedisNode } from './redis-node.js';
import { allBucketsOn, type Topology } from './topology.js';

/** Tolerated difference between the step and the observed clock, in milliseconds, because commands take time. */
const TOLERANCE_MS = 500;

/**
 * One Valkey. libfaketime steps its wall clock by the offset in a file. Debian's redis-server is not used, because its
 * jemalloc does not start with libfaketime.
 */
export class SteppingClockTopology implements Topology {
  readonly name = 'stepping-clock';
  readonly isSharded = false;
  readonly master: RedisNode;
  private readonly folder: TempDir;

  private constructor(node: RedisNode, folder: TempDir) {
    this.master = node;
    this.folder = folder;
  }

  /** Returns whether libfaketime is available. */
  static isPossible(): boolean {
    return optionalToolPath('stepping-clock') !== undefined;
  }

  static async start(): Promise<SteppingClockTopology> {
    const folder = new TempDir();
    const offsets = folder.write('offset', '+0');
    const command = `'${toolPath('stepping-clock')}' '${toolPath('valkey-server')}'`;
    const script = `#!/bin/sh\nexport FAKETIME_TIMESTAMP_FILE='${offsets}'\nexec ${command} "$@"\n`;
    const binary = folder.write('valkey', script);
    chmodSync(binary, 0o755);
    return new SteppingClockTopology(await RedisNode.start({ binary }), folder);
  }

  get env(): NodeJS.ProcessEnv {
    return { REDIS_URL: `127.0.0.1:${this.master.port}` };
  }

  async nodesOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    return allBucketsOn(this.master, buckets);
  }

  /** Steps the clock to this offset from the real time. Resolves when commands return the new time. */
  async step(offsetMs: number): Promise<void> {
    const sign = offsetMs < 0 ? '' : '+';
    writeFileSync(this.folder.join('offset'), `${sign}${(offsetMs / 1000).toFixed(3)}`);
    await waitFor('the clock of Redis to step', async () => {
      const [seconds, micros] = (await this.master.command('TIME')) as [string, string];
      const observedMs = Number(seconds) * 1000 + Number(micros) / 1000 - Date.now();
      return Math.abs(observedMs - offsetMs) < TOLERANCE_MS ? true : undefined;
    });
  }

  async stop(): Promise<void> {
    await this.master.stop();
    this.folder.remove();
  }
}
