import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEnvoyWith } from '../envoy/envoy.js';
import { freePorts } from '../process/free-port.js';
import { httpRequest } from '../process/http-client.js';
import { waitFor } from '../process/wait-for.js';
import type { ShardingProxy, ShardingProxyOptions } from './sharding-proxy.js';

/** Options of {@link startEnvoyRedisProxy}. */
export interface EnvoyRedisProxyOptions extends ShardingProxyOptions {
  /** Default MAGLEV. */
  readonly hashing?: 'MAGLEV' | 'RING_HASH';
  /** Timeout of a server; default 1 s. */
  readonly opTimeout?: string;
}

/** Ports, and path of the file that lists the servers. */
interface Place {
  readonly port: number;
  readonly adminPort: number;
  readonly file: string;
}

/** Starts a real Envoy with the redis_proxy filter; resolves when it is ready. */
export async function startEnvoyRedisProxy(options: EnvoyRedisProxyOptions): Promise<ShardingProxy> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const folder = mkdtempSync(join(tmpdir(), 'weir-redis-proxy-'));
  const place = { port: options.port ?? port, adminPort, file: join(folder, 'servers.json') };
  const start = (): ReturnType<typeof startEnvoyWith> =>
    startEnvoyWith(bootstrap(options, place), adminPort, 1);
  name(place, options.servers);
  let proxy = await start();
  return {
    port: place.port,
    setServers: async (servers) => {
      name(place, servers);
      await waitFor('Envoy to know its servers', async () => {
        const { body } = await httpRequest(adminPort, '/clusters');
        const known = new Set(
          [...body.matchAll(/^redis::127\.0\.0\.1:(\d+)::/gm)].map(([, of]) => Number(of)),
        );
        return known.size === servers.length && servers.every((server) => known.has(server));
      });
    },
    kill: async () => {
      await proxy.stop('SIGKILL');
    },
    restart: async (servers) => {
      if (servers !== undefined) name(place, servers);
      proxy = await start();
    },
    stop: async () => {
      await proxy.stop('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const at = (port: number): unknown => ({ socket_address: { address: '127.0.0.1', port_value: port } });

/** Writes the list of servers. Envoy watches for files that are moved into place. */
function name({ file }: Place, servers: readonly number[]): void {
  const assignment = {
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    cluster_name: 'redis',
    endpoints: [{ lb_endpoints: servers.map((server) => ({ endpoint: { address: at(server) } })) }],
  };
  writeFileSync(`${file}.new`, JSON.stringify({ resources: [assignment] }));
  renameSync(`${file}.new`, file);
}

function bootstrap(options: EnvoyRedisProxyOptions, { port, adminPort, file }: Place): string {
  const { honoursHashTags, hashing = 'MAGLEV', opTimeout = '1s' } = options;
  // Envoy reads JSON because JSON is valid YAML.
  return JSON.stringify({
    node: { id: 'redis-proxy', cluster: 'redis-proxy' },
    admin: { address: at(adminPort) },
    static_resources: {
      listeners: [
        {
          address: at(port),
          filter_chains: [
            {
              filters: [
                {
                  name: 'envoy.filters.network.redis_proxy',
                  typed_config: {
                    '@type': 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy',
                    stat_prefix: 'redis',
                    settings: { op_timeout: opTimeout, enable_hashtagging: honoursHashTags },
                    prefix_routes: { catch_all_route: { cluster: 'redis' } },
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'redis',
          connect_timeout: '0.5s',
          type: 'EDS',
          lb_policy: hashing,
          eds_cluster_config: {
            eds_config: { path_config_source: { path: file }, resource_api_version: 'V3' },
          },
        },
      ],
    },
  });
}
