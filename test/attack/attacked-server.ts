import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RlsClient } from '../support/grpc/rls-client.js';
import { preloading } from '../support/process/preload.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import { INNOCENT, innocentPolicy } from './policy-texts.js';
import { POLICY_FILES } from './requests.js';

/**
 * The heap that Node.js 24 chooses in containers of 256 MiB and of 512 MiB: an old generation of 256 MiB and three
 * semi-spaces of 1 MiB (`v8.getHeapStatistics().heap_size_limit` is 259 MiB in both).
 */
const CONTAINER_HEAP = '--max-old-space-size=256 --max-semi-space-size=1';

/** A weir with the heap of a small container, whose memory is measured. */
export class MemoryServer {
  readonly weir: WeirServer;
  private readonly collections: string;

  private constructor(weir: WeirServer, collections: string) {
    this.weir = weir;
    this.collections = collections;
  }

  static async start(env: NodeJS.ProcessEnv = {}): Promise<MemoryServer> {
    const folder = new TempDir();
    const files = { ...POLICY_FILES, [`${INNOCENT}.yaml`]: innocentPolicy() };
    for (const [name, text] of Object.entries(files)) folder.write(join('policies', name), text);
    const collections = folder.write('collections', '');
    const weir = await startWeir({
      env: {
        CONFIG_PATH: folder.join('policies'),
        NODE_OPTIONS: `${preloading('test/support/weir/collect-garbage.js')} ${CONTAINER_HEAP}`,
        WEIR_GARBAGE_FILE: collections,
        // As in the image (deploy/Dockerfile).
        MALLOC_ARENA_MAX: '1',
        // Half of what deploy/kubernetes sets for a process twice as large; the buckets of the attacks are not the
        // subject.
        MEMORY_MAX_BYTES: '33554432',
        ...env,
      },
    });
    return new MemoryServer(weir, collections);
  }

  /** Collects garbage, and starts a new peak; resolves with {@link heldBytes}. */
  async settle(): Promise<number> {
    const before = readFileSync(this.collections).length;
    this.weir.process.signal('SIGUSR2');
    await waitFor(
      'the garbage to be collected',
      () => !this.isAlive() || readFileSync(this.collections).length > before || undefined,
      60_000,
    );
    if (!this.isAlive()) return 0;
    // Writing 5 resets the peak of resident memory (man 5 proc).
    writeFileSync(`/proc/${this.weir.process.pid}/clear_refs`, '5');
    return this.heldBytes('VmRSS');
  }

  /** Returns the maximum of {@link heldBytes} since {@link settle}; undefined when the process has ended. */
  peak(): number | undefined {
    return this.isAlive() ? this.heldBytes('VmHWM') : undefined;
  }

  /**
   * Returns resident bytes without the pages of files, such as the program of Node.js. The kernel frees such pages
   * before it ends a process because its container is full.
   */
  private heldBytes(name: 'VmRSS' | 'VmHWM'): number {
    const status = readFileSync(`/proc/${this.weir.process.pid}/status`, 'utf8');
    const bytesOf = (field: string): number =>
      1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]);
    return bytesOf(name) - bytesOf('RssFile');
  }

  isAlive(): boolean {
    return this.weir.process.isRunning();
  }

  /** Returns the grpc-status of an innocent call. */
  async askInnocently(): Promise<number> {
    const client = new RlsClient(this.weir.grpcPort);
    const entry = { key: 'caller', value: 'innocent' };
    const more = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    const { code } = await client.ask(INNOCENT, [{ entries: [entry], ...more }], { timeoutMs: 60_000 });
    client.close();
    return code;
  }
}
