import { chmodSync, writeFileSync } from 'node:fs';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath, toolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { RedisNode } from './redis-node.js';
import { decidedBy, type Topology } from './topology.js';

/** How far a step may be off when it is looked at from outside, milliseconds: the way there. */
const SEEN_MS = 500;

/**
 * One Valkey whose wall clock is moved by libfaketime, which reads from a file by how much. That of Debian's
 * redis-server cannot be: its jemalloc does not start together with that library.
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

  /** Whether what it needs is here. */
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

  async decidersOf(buckets: readonly string[]): Promise<ReadonlyMap<string, RedisNode>> {
    return decidedBy(this.master, buckets);
  }

  /** Moves the clock; resolves when commands see it, which a step is that was seen. */
  async step(offsetMs: number): Promise<void> {
    const sign = offsetMs < 0 ? '' : '+';
    writeFileSync(this.folder.join('offset'), `${sign}${(offsetMs / 1000).toFixed(3)}`);
    await waitFor('the clock of Redis to step', async () => {
      const [seconds, micros] = (await this.master.command('TIME')) as [string, string];
      const seenMs = Number(seconds) * 1000 + Number(micros) / 1000 - Date.now();
      return Math.abs(seenMs - offsetMs) < SEEN_MS ? true : undefined;
    });
  }

  async stop(): Promise<void> {
    await this.master.stop();
    this.folder.remove();
  }
}
