import { httpRequest } from './http-client.js';
import type { StartedProcess } from './processes.js';
import { waitFor } from './wait-for.js';

/**
 * Waits until /healthcheck answers OK. If the process exits before, or after `timeoutMs`, this stops it and throws its
 * output.
 */
export async function untilHealthy(
  name: string,
  started: StartedProcess,
  httpPort: number,
  // A machine under load may need more than a minute to start a server with many policies.
  timeoutMs = 120_000,
): Promise<void> {
  try {
    await waitFor(
      `${name} to serve`,
      async () => {
        if (!started.isRunning()) return true;
        return (await httpRequest(httpPort, '/healthcheck')).status === 200 ? true : undefined;
      },
      timeoutMs,
    );
    if (!started.isRunning()) throw new Error(`${name} ended`);
  } catch (error) {
    await started.stop('SIGKILL');
    throw new Error(`${(error as Error).message}; it printed:\n${started.lines().join('\n')}`);
  }
}
