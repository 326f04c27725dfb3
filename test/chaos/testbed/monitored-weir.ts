import { writeFileSync } from 'node:fs';
import { httpRequest } from '../../support/process/http-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { WeirWatch, watchSettings } from '../latency/answer-log.js';

const START_MS = 60_000;
/** Metrics that say that weir itself is broken. */
const BROKEN = ['weir_broken_invariants_total', 'weir_worker_restarts_total'];
const ALARMING = /unhandled|uncaught|must hold|heap out of memory|FATAL|at .*\.js:\d+/i;

/** A folder in memory where there is one: what is measured may not wait for a disk. */
function inMemory(): TempDir {
  try {
    return new TempDir('/dev/shm');
  } catch {
    return new TempDir();
  }
}

/** A weir whose processes are watched from inside. */
export class WeirHost {
  readonly name: string;
  readonly weir: WeirServer;
  readonly watch: WeirWatch;
  private readonly folder: TempDir;
  private readonly offsets: TempDir;

  private constructor(name: string, weir: WeirServer, folder: TempDir, offsets: TempDir) {
    this.name = name;
    this.weir = weir;
    this.folder = folder;
    this.offsets = offsets;
    this.watch = new WeirWatch(folder.path);
  }

  static async start(name: string, policy: string, env: NodeJS.ProcessEnv): Promise<WeirHost> {
    const folder = inMemory();
    const offsets = new TempDir();
    const offsetFile = offsets.write('clock', '0');
    const weir = await startWeir({
      policy,
      untilHealthy: false,
      env: { ...watchSettings(folder.path, offsetFile), ...env },
    });
    const host = new WeirHost(name, weir, folder, offsets);
    await waitFor(
      `${name} to serve`,
      async () => {
        if (!weir.process.isRunning()) return true;
        return (await httpRequest(weir.httpPort, '/healthcheck')).status === 200 ? true : undefined;
      },
      START_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}; it printed:\n${weir.process.lines().join('\n')}`);
    });
    return host;
  }

  /** Makes the wall clocks of its processes step. */
  stepClock(offsetMs: number): void {
    writeFileSync(this.offsets.join('clock'), String(offsetMs));
    for (const pid of this.watch.pids()) process.kill(pid, 'SIGUSR2');
  }

  /** What its log and its metrics say that no fault behind it may cause, in sentences. */
  async wrongs(): Promise<string[]> {
    const { process: started, httpPort } = this.weir;
    if (!started.isRunning()) return [`${this.name} has ended: ${started.lines().slice(-5).join(' / ')}`];
    const alarming = started.lines().filter((line) => ALARMING.test(line) || !line.startsWith('{'));
    const wrongs = alarming.slice(0, 5).map((line) => `${this.name} logged: ${line}`);
    const { body } = await httpRequest(httpPort, '/metrics');
    for (const metric of BROKEN) {
      const value = new RegExp(`^${metric} (\\S+)`, 'm').exec(body)?.[1];
      if (value !== undefined && Number(value) > 0) wrongs.push(`${this.name} shows ${metric} ${value}`);
    }
    return wrongs;
  }

  async stop(): Promise<void> {
    this.watch.close();
    await this.weir.stop('SIGKILL');
    this.folder.remove();
    this.offsets.remove();
  }
}
