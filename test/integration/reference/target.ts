import { freePorts } from '../../support/free-port.js';
import { httpRequest } from '../../support/http-client.js';
import { type Exit, startProcess } from '../../support/processes.js';
import { waitFor } from '../../support/wait-for.js';
import { startWeir } from '../../support/weir.js';

/** Path of a `ratelimit` program of envoyproxy/ratelimit that the cases shall run against in the place of weir. */
export const REFERENCE_PROGRAM: string | undefined = process.env['WEIR_TEST_REFERENCE'] || undefined;

/** A server under test: weir, or the reference. */
export interface Target {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly debugPort: number;
  /** What it printed. */
  lines(): string[];
  isRunning(): boolean;
  /** Resolves when it has ended. */
  readonly exited: Promise<Exit>;
  stop(): Promise<Exit>;
}

/** Starts the server under test with these variables and ports of its own on 127.0.0.1. */
export async function startTarget(
  env: Readonly<Record<string, string>>,
  { untilHealthy = true }: { readonly untilHealthy?: boolean } = {},
): Promise<Target> {
  if (REFERENCE_PROGRAM !== undefined) return startReference(REFERENCE_PROGRAM, env, untilHealthy);
  const weir = await startWeir({ env, untilHealthy });
  return {
    grpcPort: weir.grpcPort,
    httpPort: weir.httpPort,
    debugPort: weir.debugPort,
    lines: () => weir.process.lines(),
    isRunning: () => weir.process.isRunning(),
    exited: weir.process.exited,
    stop: () => weir.stop(),
  };
}

async function startReference(
  program: string,
  env: Readonly<Record<string, string>>,
  untilHealthy: boolean,
): Promise<Target> {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const started = startProcess(program, [], {
    bareEnvironment: true,
    env: {
      GRPC_HOST: '127.0.0.1',
      GRPC_PORT: String(grpcPort),
      HOST: '127.0.0.1',
      PORT: String(httpPort),
      DEBUG_HOST: '127.0.0.1',
      DEBUG_PORT: String(debugPort),
      ...env,
    },
  });
  const target: Target = {
    grpcPort,
    httpPort,
    debugPort,
    lines: () => started.lines(),
    isRunning: () => started.isRunning(),
    exited: started.exited,
    stop: () => started.stop(),
  };
  if (!untilHealthy) return target;
  try {
    await waitFor('the reference to serve', async () => {
      if (!started.isRunning()) return true;
      return (await httpRequest(httpPort, '/healthcheck')).status === 200 ? true : undefined;
    });
    if (!started.isRunning()) throw new Error('it ended');
  } catch (error) {
    await started.stop('SIGKILL');
    throw new Error(`${(error as Error).message}; it printed:\n${started.lines().join('\n')}`);
  }
  return target;
}
