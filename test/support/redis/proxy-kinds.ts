import { optionalToolPath } from '../process/tools.js';
import { startEnvoyRedisProxy } from './envoy-redis-proxy.js';
import type { ShardingProxy, ShardingProxyOptions } from './sharding-proxy.js';
import { startTwemproxy } from './twemproxy.js';

/** A kind of sharding proxy. */
export interface ProxyKind {
  readonly name: 'twemproxy' | 'redis_proxy';
  /** Whether the program is installed; otherwise its tests are skipped. */
  readonly isInstalled: boolean;
  start(options: ShardingProxyOptions): Promise<ShardingProxy>;
}

/** Kinds of proxies that weir is tested with. */
export const PROXY_KINDS: readonly ProxyKind[] = [
  {
    name: 'twemproxy',
    isInstalled: optionalToolPath('nutcracker') !== undefined,
    start: startTwemproxy,
  },
  { name: 'redis_proxy', isInstalled: true, start: startEnvoyRedisProxy },
];
