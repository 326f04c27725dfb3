import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';
import { startProcess } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { acceptsConnections } from './accepts-connections.js';

/** A real twemproxy (nutcracker) on 127.0.0.1, which distributes keys over several Redis servers. */
export interface Twemproxy {
  readonly port: number;
  stop(): Promise<unknown>;
}

/** Starts a twemproxy on `listens` in front of the `servers` on 127.0.0.1; resolves when it accepts connections. */
export async function startTwemproxy(servers: readonly number[], listens?: number): Promise<Twemproxy> {
  const [free = 0, statsPort = 0] = await freePorts(2);
  const port = listens ?? free;
  const folder = new TempDir();
  const file = folder.write('nutcracker.yml', configuration(servers, port));
  const proxy = startProcess(toolPath('nutcracker'), [
    ...['--conf-file', file, '--pid-file', folder.join('nutcracker.pid')],
    ...['--output', folder.join('nutcracker.log')],
    ...['--stats-addr', '127.0.0.1', '--stats-port', String(statsPort)],
  ]);
  await waitFor(`twemproxy on port ${port}`, () => {
    if (!proxy.isRunning()) throw new Error(`it ended:\n${proxy.lines().join('\n')}`);
    return acceptsConnections(port);
  });
  return closeLater({ port, stop: () => proxy.stop('SIGKILL') }, ({ stop }) => stop());
}

function configuration(servers: readonly number[], port: number): string {
  return [
    'weir:',
    `  listen: 127.0.0.1:${port}`,
    '  redis: true',
    '  hash: fnv1a_64',
    '  distribution: ketama',
    '  auto_eject_hosts: false',
    '  hash_tag: "{}"',
    '  servers:',
    ...servers.map((server, i) => `   - 127.0.0.1:${server}:1 server${i}`),
    '',
  ].join('\n');
}
