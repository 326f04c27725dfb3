import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { residentBytes } from '../bench/cpu.js';
import { MATCHER_FILES } from '../stall/cases/matchers.js';
import { INNOCENT, innocentPolicy } from '../stall/policy-texts.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { preloading } from '../support/process/preload.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

/**
 * What Node.js 24 chooses by itself in a container of 256 MiB, and in one of 512 MiB: an old generation of 256 MiB,
 * three semi-spaces of 1 MiB (`v8.getHeapStatistics().heap_size_limit` is 259 MiB in both).
 */
const CONTAINER_HEAP = '--max-old-space-size=256 --max-semi-space-size=1';

/** A weir with the heap that it would have in a small container, whose memory is watched. */
export class MemoryServer {
  readonly weir: WeirServer;
  private readonly folder: TempDir;
  private readonly collections: string;

  private constructor(weir: WeirServer, folder: TempDir, collections: string) {
    this.weir = weir;
    this.folder = folder;
    this.collections = collections;
  }

  static async start(env: NodeJS.ProcessEnv = {}): Promise<MemoryServer> {
    const folder = new TempDir();
    const files = { ...MATCHER_FILES, [`${INNOCENT}.yaml`]: innocentPolicy() };
    for (const [name, text] of Object.entries(files)) folder.write(join('policies', name), text);
    const collections = folder.write('collections', '');
    const weir = await startWeir({
      env: {
        CONFIG_PATH: folder.join('policies'),
        NODE_OPTIONS: `${preloading('test/memory/collect-garbage.js')} ${CONTAINER_HEAP}`,
        WEIR_GARBAGE_FILE: collections,
        // The buckets of the attacks are not what is asked about: half of what deploy/kubernetes gives a process twice
        // as large.
        MEMORY_MAX_BYTES: '33554432',
        ...env,
      },
    });
    return new MemoryServer(weir, folder, collections);
  }

  /** Collects what is garbage, and begins a new peak; resolves with the bytes in RAM. */
  async settle(): Promise<number> {
    const before = readFileSync(this.collections).length;
    this.weir.process.signal('SIGUSR2');
    await waitFor(
      'the garbage to be collected',
      () => !this.isAlive() || readFileSync(this.collections).length > before || undefined,
      60_000,
    );
    if (!this.isAlive()) return 0;
    // 5: the peak of resident memory (man 5 proc).
    writeFileSync(`/proc/${this.weir.process.pid}/clear_refs`, '5');
    return residentBytes(this.weir.process.pid);
  }

  /** Most bytes in RAM since {@link settle}; undefined when the process has ended. */
  peak(): number | undefined {
    const path = `/proc/${this.weir.process.pid}/status`;
    if (!existsSync(path)) return undefined;
    const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(path, 'utf8'));
    return line === null ? undefined : Number(line[1]) * 1024;
  }

  isAlive(): boolean {
    return this.weir.process.isRunning();
  }

  /** The grpc-status of an innocent call. */
  async askInnocently(): Promise<number> {
    const client = new RlsClient(this.weir.grpcPort);
    const entry = { key: 'caller', value: 'innocent' };
    const more = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    const { code } = await client.ask(INNOCENT, [{ entries: [entry], ...more }], { timeoutMs: 60_000 });
    client.close();
    return code;
  }

  async stop(): Promise<void> {
    await this.weir.stop('SIGKILL');
    this.folder.remove();
  }
}
