import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';
import { httpRequest } from '../process/http-client.js';
import { type Exit, runToEnd, type StartedProcess, startProcess } from '../process/processes.js';
import { repositoryRoot, toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';

export interface EnvoyOptions {
  /** Path of the bootstrap in the repository: `deploy/envoy/envoy.yaml`. */
  readonly file: string;
  /** Ports of weir and the upstream on 127.0.0.1. */
  readonly weirPort: number;
  readonly upstreamPort: number;
  /** Further changes of the file's text. The file must contain every text to replace. */
  readonly changes?: readonly (readonly [from: string, to: string])[];
  /** False: do not wait until Envoy's health check succeeds. */
  readonly untilWeirServes?: boolean;
}

export interface EnvoyServer {
  readonly port: number;
  readonly adminPort: number;
  readonly process: StartedProcess;
  /** Returns whether Envoy considers weir healthy. */
  weirIsHealthy(): Promise<boolean>;
  /** Returns the value of a counter or gauge; 0 until Envoy has it. */
  stat(name: string): Promise<number>;
  stop(): Promise<Exit>;
}

/**
 * Replaces texts of a shipped file. Throws if the file does not contain one of them, so that tests fail when the file
 * changes.
 */
export function withChanges(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  let changed = text;
  for (const [from, to] of changes) {
    if (!changed.includes(from)) throw new Error(`nothing to replace: ${from}`);
    changed = changed.replaceAll(from, to);
  }
  return changed;
}

/** Validates a bootstrap with Envoy. Resolves with the result and the output. */
export async function validateEnvoy(bootstrap: string): Promise<{ good: boolean; output: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-envoy-'));
  const path = join(folder, 'envoy.yaml');
  writeFileSync(path, bootstrap);
  const { code, stdout, stderr } = await runToEnd(toolPath('envoy'), ['--mode', 'validate', '-c', path]);
  rmSync(folder, { recursive: true, force: true });
  return { good: code === 0, output: stdout + stderr };
}

/** Starts Envoy with a bootstrap file that is removed when Envoy exits. */
function launch(bootstrap: string, concurrency = 2): StartedProcess {
  const folder = mkdtempSync(join(tmpdir(), 'weir-envoy-'));
  const path = join(folder, 'envoy.yaml');
  writeFileSync(path, bootstrap);
  const started = startProcess(toolPath('envoy'), [
    ...['-c', path, '--concurrency', String(concurrency), '--disable-hot-restart', '--log-level', 'warning'],
    // Without this flag, Envoy writes access logs after ten seconds.
    ...['--file-flush-interval-msec', '100'],
  ]);
  void started.exited.then(() => rmSync(folder, { recursive: true, force: true }));
  return closeLater(started, () => started.stop());
}

/** Waits until Envoy is ready. Rejects with Envoy's output if it exits, or after a timeout. */
async function untilReady(started: StartedProcess, ready: () => Promise<true | undefined>): Promise<void> {
  try {
    await waitFor('Envoy to be ready', async () => (started.isRunning() ? ready() : true));
    if (!started.isRunning()) throw new Error('Envoy ended');
  } catch (error) {
    await started.stop('SIGKILL');
    throw new Error(`${(error as Error).message}; it printed:\n${started.lines().join('\n')}`);
  }
}

const isReady = async (adminPort: number) =>
  (await httpRequest(adminPort, '/ready')).status === 200 ? true : undefined;

/**
 * Starts a real Envoy with a test's bootstrap and `concurrency` workers, and waits until it serves. `signal` ends it;
 * the default is SIGTERM.
 */
export async function startEnvoyWith(
  bootstrap: string,
  adminPort: number,
  concurrency?: number,
): Promise<{ stop(signal?: NodeJS.Signals): Promise<Exit> }> {
  const started = launch(bootstrap, concurrency);
  await untilReady(started, () => isReady(adminPort));
  return { stop: (signal) => started.stop(signal) };
}

/** Starts a real Envoy with a shipped bootstrap whose addresses are changed to loopback, and waits until it serves. */
export async function startEnvoy(options: EnvoyOptions): Promise<EnvoyServer> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const text = withChanges(readFileSync(join(repositoryRoot, options.file), 'utf8'), [
    ['address: 0.0.0.0, port_value: 10000', `address: 127.0.0.1, port_value: ${port}`],
    ['address: 127.0.0.1, port_value: 9901', `address: 127.0.0.1, port_value: ${adminPort}`],
    ['address: upstream, port_value: 9090', `address: 127.0.0.1, port_value: ${options.upstreamPort}`],
    ['address: weir, port_value: 8081', `address: 127.0.0.1, port_value: ${options.weirPort}`],
    ...(options.changes ?? []),
  ]);
  const started = launch(text);

  const stat = async (name: string) => {
    const { body } = await httpRequest(adminPort, `/stats?filter=^${name.replaceAll('.', '\\.')}$`);
    return Number(body.trim().split(': ')[1] ?? 0);
  };
  const weirIsHealthy = async () => (await stat('cluster.weir.membership_healthy')) > 0;
  await untilReady(started, async () => {
    if ((await isReady(adminPort)) === undefined) return undefined;
    return options.untilWeirServes === false || (await weirIsHealthy()) ? true : undefined;
  });
  return { port, adminPort, process: started, weirIsHealthy, stat, stop: () => started.stop() };
}
