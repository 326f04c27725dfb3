import { httpRequest } from './http-client.js';
import type { StartedProcess } from './processes.js';
import { waitFor } from './wait-for.js';

/**
 * Waits until /healthcheck says OK. Of a process that ends before, or is late, nothing stays and its output is thrown.
 */
export async function untilHealthy(
  name: string,
  started: StartedProcess,
  httpPort: number,
  timeoutMs?: number,
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
