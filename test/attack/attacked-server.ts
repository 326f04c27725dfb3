import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { preloading } from '../support/process/preload.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';
import type { AimedAttack, Attack } from './attacker/attack.js';
import { INNOCENT, POLICY_FILES } from './requests.js';

/**
 * The heap that Node.js 24 chooses in containers of 256 MiB and of 512 MiB: an old generation of 256 MiB and three
 * semi-spaces of 1 MiB (`v8.getHeapStatistics().heap_size_limit` is 259 MiB in both).
 */
const CONTAINER_HEAP = '--max-old-space-size=256 --max-semi-space-size=1';

/** A weir with the heap of a small container, whose memory is measured. */
export class AttackedServer {
  readonly weir: WeirServer;
  private readonly collections: string;

  private constructor(weir: WeirServer, collections: string) {
    this.weir = weir;
    this.collections = collections;
  }

  /** Starts weir. It has answered an innocent call when the returned promise resolves. */
  static async start(env: NodeJS.ProcessEnv = {}): Promise<AttackedServer> {
    const folder = new TempDir();
    for (const [name, text] of Object.entries(POLICY_FILES)) folder.write(join('policies', name), text);
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
    const server = new AttackedServer(weir, collections);
    await server.askInnocently();
    return server;
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

  /** Returns an attack on this server. */
  aim(attack: Attack): AimedAttack {
    return { attack, port: attack.kind === 'http' ? this.weir.httpPort : this.weir.grpcPort };
  }

  isAlive(): boolean {
    return this.weir.process.isRunning();
  }

  /** Sends innocent calls, one after the other, until `attack` settles. Throws unless each is allowed. */
  async askInnocently(attack: Promise<unknown> = Promise.resolve()): Promise<void> {
    const client = new RlsClient(this.weir.grpcPort);
    let isOver = false;
    const over = attack.finally(() => {
      isOver = true;
    });
    do {
      const asked = await client.ask(INNOCENT, [descriptor(['caller=innocent'])], { timeoutMs: 60_000 });
      if (asked.response?.overallCode !== CODE.OK)
        throw new Error(`an innocent caller was answered with status ${asked.code} ${asked.details}`);
    } while (!isOver);
    client.close();
    await over;
  }
}
