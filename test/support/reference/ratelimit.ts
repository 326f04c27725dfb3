import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';
import { type StartedProcess, startProcess } from '../process/processes.js';
import { untilHealthy } from '../process/until-healthy.js';

export interface RatelimitServer {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly debugPort: number;
  readonly process: StartedProcess;
}

/**
 * Starts a program such as the image's /bin/ratelimit ({@link copyImagePrograms}) or the reference's as a container
 * would, with only the variables in `env`, and waits until it serves. Ports and addresses are chosen here, because the
 * default ones may be in use.
 */
export async function startRatelimit(
  program: string,
  env: Readonly<Record<string, string>>,
  {
    untilHealthy: waits = true,
    args = [],
  }: { readonly untilHealthy?: boolean; readonly args?: readonly string[] } = {},
): Promise<RatelimitServer> {
  const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
  const started = startProcess(program, args, {
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
  closeLater(started, () => started.stop());
  const server = { grpcPort, httpPort, debugPort, process: started };
  if (waits) await untilHealthy('the service', started, httpPort);
  return server;
}
