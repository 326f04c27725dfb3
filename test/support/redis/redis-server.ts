import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';
import { type Exit, type StartedProcess, startProcess } from '../process/processes.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { acceptsConnections } from './accepts-connections.js';

export interface StartRedisOptions {
  /** Default: a free port. */
  readonly port?: number;
  /** Further arguments of redis-server, such as `--requirepass`. */
  readonly args?: readonly string[];
  /** Default: `redis-server` of tools.ts. */
  readonly binary?: string;
  /** Starts a Sentinel with these lines of sentinel.conf; `args` are ignored then. */
  readonly sentinelConf?: readonly string[];
}

export interface RedisServer {
  readonly port: number;
  /** Folder of this server for sockets and certificates. */
  readonly folder: string;
  readonly pid: number;
  /** Sends SIGSTOP: connections remain open, but the process does not answer. */
  pause(): void;
  /** Sends SIGCONT. */
  resume(): void;
  /** Kills the process, as a crash does. */
  kill(): Promise<Exit>;
  /** Starts the process again, empty, on the same port. The process must have exited. */
  restart(): Promise<void>;
  /** Stops the process, even if it is paused, and removes its folder. */
  stop(): Promise<void>;
}

/** With a title of its own, Redis overwrites the variable by which .ci/leftovers.mjs finds processes of a test run. */
const KEEP_ENVIRONMENT = 'no';

/** Starts a real redis-server on 127.0.0.1 without persistence; resolves when it answers. */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  const binary = options.binary ?? toolPath('redis-server');
  const port = options.port ?? ((await freePorts(1))[0] as number);
  const folder = mkdtempSync(join(tmpdir(), 'weir-redis-'));
  const serverArgs = [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
    ...['--save', '', '--appendonly', 'no', '--daemonize', 'no', '--set-proc-title', KEEP_ENVIRONMENT],
    ...(options.args ?? []),
  ];
  const args =
    options.sentinelConf === undefined
      ? serverArgs
      : [writeSentinelConf(folder, port, options.sentinelConf), '--sentinel'];
  const start = async (): Promise<StartedProcess> => {
    const started = startProcess(binary, args);
    await waitFor(`redis-server on port ${port}`, async () => {
      if (!started.isRunning()) throw new Error(`it ended:\n${started.lines().join('\n')}`);
      return (
        started.lines().some((line) => /ready to accept connections|Sentinel ID is/i.test(line)) &&
        // A server with TLS only does not log more.
        (await acceptsConnections(port))
      );
    });
    return started;
  };
  let server = await start();
  const redis: RedisServer = {
    port,
    folder,
    get pid() {
      return server.pid;
    },
    pause: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    kill: () => server.stop('SIGKILL'),
    restart: async () => {
      server = await start();
    },
    stop: async () => {
      // SIGKILL also ends a paused process.
      await server.stop('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return closeLater(redis, () => redis.stop());
}

/** Writes the configuration of a Sentinel, which the Sentinel rewrites later. Returns its path. */
function writeSentinelConf(folder: string, port: number, lines: readonly string[]): string {
  const file = join(folder, 'sentinel.conf');
  const first = [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, `set-proc-title ${KEEP_ENVIRONMENT}`];
  writeFileSync(file, [...first, ...lines, ''].join('\n'));
  return file;
}
