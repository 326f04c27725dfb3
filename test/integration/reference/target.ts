import type { Exit } from '../../support/process/processes.js';
import { startRatelimit } from '../../support/reference/ratelimit.js';
import { startWeir } from '../../support/weir/weir.js';

/** Path of the `ratelimit` program of envoyproxy/ratelimit to test instead of weir. */
export const REFERENCE_PROGRAM: string | undefined = process.env['WEIR_TEST_REFERENCE'] || undefined;

/** A server under test: weir, or the reference. */
export interface Target {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly debugPort: number;
  /** Returns the lines of its output. */
  lines(): string[];
  isRunning(): boolean;
  /** Resolves when the server has exited. */
  readonly exited: Promise<Exit>;
  stop(): Promise<Exit>;
}

/** Starts the server under test with these variables, and with separate ports on 127.0.0.1. */
export async function startTarget(
  env: Readonly<Record<string, string>>,
  { untilHealthy = true }: { readonly untilHealthy?: boolean } = {},
): Promise<Target> {
  const server =
    REFERENCE_PROGRAM === undefined
      ? await startWeir({ env, untilHealthy })
      : await startRatelimit(REFERENCE_PROGRAM, env, { untilHealthy });
  const { grpcPort, httpPort, debugPort, process: started } = server;
  return {
    grpcPort,
    httpPort,
    debugPort,
    lines: () => started.lines(),
    isRunning: () => started.isRunning(),
    exited: started.exited,
    stop: () => started.stop(),
  };
}
