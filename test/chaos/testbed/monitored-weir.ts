import { writeFileSync } from 'node:fs';
import { httpRequest } from '../../support/process/http-client.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { AnswerLog, answerLogSettings } from '../latency/answer-log.js';

const START_MS = 60_000;
/** Metrics that show an error in weir itself. */
const ERROR_METRICS = ['weir_broken_invariants_total', 'weir_worker_restarts_total'];
const ERROR_LINES = /unhandled|uncaught|impossible internal state|heap out of memory|FATAL|at .*\.js:\d+/i;

/** Returns a temporary folder, in memory if possible, because slow disks would change the measured times. */
function tempDirInMemory(): TempDir {
  try {
    return new TempDir('/dev/shm');
  } catch {
    return new TempDir();
  }
}

/** A weir server whose processes record the times of their answers. */
export class MonitoredWeir {
  readonly name: string;
  readonly server: WeirServer;
  readonly answerLog: AnswerLog;
  private readonly folder: TempDir;
  private readonly offsets: TempDir;

  private constructor(name: string, server: WeirServer, folder: TempDir, offsets: TempDir) {
    this.name = name;
    this.server = server;
    this.folder = folder;
    this.offsets = offsets;
    this.answerLog = new AnswerLog(folder.path);
  }

  static async start(name: string, policy: string, env: NodeJS.ProcessEnv): Promise<MonitoredWeir> {
    const folder = tempDirInMemory();
    const offsets = new TempDir();
    const offsetFile = offsets.write('clock', '0');
    const server = await startWeir({
      policy,
      untilHealthy: false,
      env: { ...answerLogSettings(folder.path, offsetFile), ...env },
    });
    const weir = new MonitoredWeir(name, server, folder, offsets);
    await waitFor(
      `${name} to serve`,
      async () => {
        if (!server.process.isRunning()) return true;
        return (await httpRequest(server.httpPort, '/healthcheck')).status === 200 ? true : undefined;
      },
      START_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}; its output:\n${server.process.lines().join('\n')}`);
    });
    return weir;
  }

  /** Steps the wall clocks of weir's processes. */
  stepClock(offsetMs: number): void {
    writeFileSync(this.offsets.join('clock'), String(offsetMs));
    for (const pid of this.answerLog.pids()) process.kill(pid, 'SIGUSR2');
  }

  /** Returns descriptions of errors in weir's log and metrics that a Redis fault must not cause. */
  async failures(): Promise<string[]> {
    const { process: started, httpPort } = this.server;
    if (!started.isRunning()) return [`${this.name} ended: ${started.lines().slice(-5).join(' / ')}`];
    const errorLines = started.lines().filter((line) => ERROR_LINES.test(line) || !line.startsWith('{'));
    const failures = errorLines.slice(0, 5).map((line) => `${this.name} logged: ${line}`);
    const { body } = await httpRequest(httpPort, '/metrics');
    for (const metric of ERROR_METRICS) {
      const value = new RegExp(`^${metric} (\\S+)`, 'm').exec(body)?.[1];
      if (value !== undefined && Number(value) > 0) failures.push(`${this.name} has ${metric} ${value}`);
    }
    return failures;
  }

  async stop(): Promise<void> {
    this.answerLog.close();
    await this.server.stop('SIGKILL');
    this.folder.remove();
    this.offsets.remove();
  }
}
