import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../process/free-port.js';
import { type StartedProcess, startProcess } from '../process/processes.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { acceptsConnections, type ShardingProxy, type ShardingProxyOptions } from './sharding-proxy.js';

/** Options of {@link startTwemproxy}. */
export interface TwemproxyOptions extends ShardingProxyOptions {
  /** Further lines of the pool, such as `timeout: 200`. */
  readonly lines?: readonly string[];
}

/** Starts a real twemproxy (nutcracker); resolves when it accepts connections. */
export async function startTwemproxy(options: TwemproxyOptions): Promise<ShardingProxy> {
  const [port = 0, statsPort = 0] = await freePorts(2);
  const listens = options.port ?? port;
  const folder = mkdtempSync(join(tmpdir(), 'weir-twemproxy-'));
  const file = join(folder, 'nutcracker.yml');
  const start = async (servers: readonly number[]): Promise<StartedProcess> => {
    writeFileSync(file, configuration({ ...options, servers, port: listens }));
    const started = startProcess(toolPath('nutcracker'), [
      ...['--conf-file', file, '--pid-file', join(folder, 'nutcracker.pid')],
      ...['--output', join(folder, 'nutcracker.log')],
      ...['--stats-addr', '127.0.0.1', '--stats-port', String(statsPort)],
    ]);
    await waitFor(`twemproxy on port ${listens}`, () => {
      if (!started.isRunning()) throw new Error(`it ended:\n${started.lines().join('\n')}`);
      return acceptsConnections(listens);
    });
    return started;
  };
  let { servers } = options;
  let proxy = await start(servers);
  return {
    port: listens,
    kill: async () => {
      await proxy.stop('SIGKILL');
    },
    restart: async (others) => {
      servers = others ?? servers;
      proxy = await start(servers);
    },
    stop: async () => {
      await proxy.stop('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration({ servers, honoursHashTags, port, lines = [] }: TwemproxyOptions): string {
  return [
    'weir:',
    `  listen: 127.0.0.1:${port}`,
    '  redis: true',
    '  hash: fnv1a_64',
    '  distribution: ketama',
    '  auto_eject_hosts: false',
    ...(honoursHashTags ? ['  hash_tag: "{}"'] : []),
    ...lines.map((line) => `  ${line}`),
    '  servers:',
    // Fixed names give each key the same server in every run, whatever the ports are.
    ...servers.map((server, i) => `   - 127.0.0.1:${server}:1 server${i}`),
    '',
  ].join('\n');
}
