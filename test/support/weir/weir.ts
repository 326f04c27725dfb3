import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';
import { type Exit, type StartedProcess, startProcess } from '../process/processes.js';
import { repositoryRoot } from '../process/tools.js';
import { untilHealthy } from '../process/until-healthy.js';

/** Path of the compiled command. */
export const WEIR_MAIN = join(repositoryRoot, 'build/src/main.js');

export interface WeirOptions {
  /** Settings; ports and hosts are already set. */
  readonly env?: NodeJS.ProcessEnv;
  /** Text of a policy file that replaces the bundled policy. */
  readonly policy?: string;
  /** Compiled command to start; default: this checkout's. */
  readonly main?: string;
  /** Node.js that runs the command; default: this process's. */
  readonly node?: string;
  /** Arguments after `serve`. */
  readonly args?: readonly string[];
  /** Ports to use instead of free ones, to replace an earlier server. */
  readonly ports?: { readonly grpcPort: number; readonly httpPort: number; readonly debugPort: number };
  /** False: do not wait until it serves. */
  readonly untilHealthy?: boolean;
  /** False: the output is not read (processes.ts). */
  readonly readsOutput?: boolean;
}

export interface WeirServer {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly debugPort: number;
  readonly process: StartedProcess;
  /** Path of the policy file, if `policy` was given. */
  readonly policyPath: string | undefined;
  /** Parsed lines of the log, with `@message` also as `msg`; lines that are not JSON are left out. */
  log(): Record<string, unknown>[];
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

/** Parses lines of a log, as {@link WeirServer.log} returns them. */
export function parseLog(lines: readonly string[]): Record<string, unknown>[] {
  return lines.flatMap((line) => {
    try {
      const fields = JSON.parse(line) as Record<string, unknown>;
      return [{ ...fields, msg: fields['@message'] }];
    } catch {
      return [];
    }
  });
}

/** Starts a real `weir serve` on 127.0.0.1 and waits until /healthcheck answers OK. */
export async function startWeir(options: WeirOptions = {}): Promise<WeirServer> {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] =
    options.ports === undefined
      ? await freePorts(3)
      : [options.ports.grpcPort, options.ports.httpPort, options.ports.debugPort];
  const folder = mkdtempSync(join(tmpdir(), 'weir-policy-'));
  const policyPath = options.policy === undefined ? undefined : join(folder, 'policy.yaml');
  if (policyPath !== undefined) writeFileSync(policyPath, options.policy ?? '');
  const started = startProcess(
    options.node ?? process.execPath,
    [options.main ?? WEIR_MAIN, 'serve', ...(options.args ?? [])],
    {
      bareEnvironment: true,
      readsOutput: options.readsOutput !== false,
      env: {
        GRPC_HOST: '127.0.0.1',
        GRPC_PORT: String(grpcPort),
        HOST: '127.0.0.1',
        PORT: String(httpPort),
        DEBUG_HOST: '127.0.0.1',
        DEBUG_PORT: String(debugPort),
        LOG_FORMAT: 'json',
        ...(policyPath !== undefined && { CONFIG_PATH: policyPath }),
        ...options.env,
      },
    },
  );
  void started.exited.then(() => rmSync(folder, { recursive: true, force: true }));
  if (options.untilHealthy !== false) await untilHealthy('weir', started, httpPort);
  const server: WeirServer = {
    grpcPort,
    httpPort,
    debugPort,
    process: started,
    policyPath,
    log: () => parseLog(started.lines()),
    async stop(signal) {
      const exit = await started.stop(signal);
      const broken = started
        .lines()
        .find((line) => line.includes('weir is in an impossible internal state because of a bug'));
      if (broken !== undefined) throw new Error(broken);
      return exit;
    },
  };
  return closeLater(server, () => server.stop());
}
