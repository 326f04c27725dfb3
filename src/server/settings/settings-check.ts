import { isIPv4 } from 'node:net';
import { LEASE_FOR, LEASE_MAX } from '../../policy/leases.js';
import { shownAddress } from '../../runtime/shown-address.js';
import { isNodeOlderThan } from '../node-process.js';
import { xdsServerFaults } from '../policies/xds-servers.js';
import { readRedisAddress, redisInstance } from './redis-address-settings.js';
import { SETTINGS, type Settings } from './settings-table.js';
import type { RefusedSetting } from './settings-values.js';

/** Names of variables that are set, on the command line or in the environment. */
export type GivenSettings = ReadonlySet<string>;

/** A token, RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;
const HEADER_SETTING = /^LIMIT_.*_HEADER$/;
const ENVOYS_FAMILIES = ['x-ratelimit', 'retry-after'];
const REDIS_PREFIXES = ['REDIS', 'REDIS_PERSECOND'] as const;

type Refuse = (when: boolean, variables: string | readonly string[], sentence: string) => void;

/**
 * Returns errors for combinations of valid values that are impossible or not supported. They end the start, because a
 * setting that is silently ignored could change which limits apply.
 */
export function refusedSettings(settings: Settings, given: GivenSettings): readonly RefusedSetting[] {
  const refused: RefusedSetting[] = [];
  const refuse: Refuse = (when, variables, sentence) => {
    if (when) refused.push({ variables: [variables].flat(), sentence });
  };
  const runtime = ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'].find((name) =>
    given.has(name),
  );
  refuse(
    given.has('CONFIG_PATH') && runtime !== undefined,
    'CONFIG_PATH',
    `${runtime} is also set, and both variables select the policies; unset one of the two`,
  );
  refuse(
    settings.backendType === 'memcache',
    'BACKEND_TYPE',
    'weir does not support memcache; unset this variable, and set REDIS_URL to keep buckets in Redis instead of memory',
  );
  refuse(
    settings.grpcMaxBufferedBytes < 2 * settings.maxRequestBytes,
    'GRPC_MAX_BUFFERED_BYTES',
    `${settings.grpcMaxBufferedBytes} is less than twice MAX_REQUEST_BYTES ` +
      `(${settings.maxRequestBytes}), so weir could close a connection because of a single large ` +
      'message; raise this value, or lower MAX_REQUEST_BYTES',
  );
  refuseSharedPorts(settings, refuse);
  refuse(
    (settings.debugServerTlsCert === '') !== (settings.debugServerTlsKey === ''),
    settings.debugServerTlsCert === '' ? 'DEBUG_SERVER_TLS_KEY' : 'DEBUG_SERVER_TLS_CERT',
    'TLS on the debug port needs both a certificate and its key; set both DEBUG_SERVER_TLS_CERT and ' +
      'DEBUG_SERVER_TLS_KEY, or neither',
  );
  refuseLeases(settings, refuse);
  refuseWorkers(settings, refuse);
  refuseRedis(settings, given, refuse);
  for (const [variable, why] of xdsServerFaults(settings)) {
    refuse(settings.configType === 'GRPC_XDS_SOTW', variable, why);
  }
  for (const { name, key } of SETTINGS.filter((setting) => HEADER_SETTING.test(setting.name))) {
    const header = String(settings[key]);
    refuse(
      !FIELD_NAME.test(header),
      name,
      `${JSON.stringify(shownAddress(header))} is not a valid header name, so Envoy would reject the response; use ` +
        'letters, digits and dashes',
    );
  }
  const unknown = settings.envoyAddsHeaders.find((family) => !ENVOYS_FAMILIES.includes(family));
  refuse(
    unknown !== undefined,
    'ENVOY_ADDS_HEADERS',
    `Envoy's rate limit filter does not add ${JSON.stringify(shownAddress(unknown ?? ''))}; choose from ` +
      ENVOYS_FAMILIES.join(', '),
  );
  return refused;
}

function refuseLeases({ leaseFor, leaseMax }: Settings, refuse: Refuse): void {
  refuse(
    leaseFor !== undefined && (leaseFor < LEASE_FOR.min || leaseFor > LEASE_FOR.max),
    'LEASE_FOR',
    'leases last 5ms to 10s; write a duration such as 50ms, or unset LEASE_FOR',
  );
  refuse(
    leaseMax < LEASE_MAX.min,
    'LEASE_MAX',
    `a lease has at least ${LEASE_MAX.min} tokens; write a number from ${LEASE_MAX.min} to ${LEASE_MAX.max}`,
  );
}

function refuseWorkers({ workers, redisUrl, workerScheduling, grpcPort }: Settings, refuse: Refuse): void {
  if (workers === 1) return;
  refuse(
    redisUrl === '',
    'WORKERS',
    `${workers} workers need Redis: with buckets in memory, each worker would count separately, so callers would get ` +
      'every limit several times; set REDIS_URL, or set WORKERS=1',
  );
  if (workerScheduling !== 'reuse-port') return;
  refuse(
    isNodeOlderThan(22, 12),
    'WORKER_SCHEDULING',
    `reuse-port needs Node.js 22.12 or later, but this is Node.js ${process.versions.node}; upgrade Node.js, or set ` +
      'WORKER_SCHEDULING=round-robin',
  );
  refuse(
    grpcPort === 0,
    'WORKER_SCHEDULING',
    'reuse-port needs a fixed port, because with GRPC_PORT=0 each worker would get a different port; set GRPC_PORT',
  );
}

export function servesReference(settings: Settings): boolean {
  return settings.usePrometheus && !settings.disableStats;
}

/** Parses `host:port`, `[host]:port` or `:port`, in Go's syntax. Returns undefined if the address is invalid. */
export function parseListenAddress(address: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  return { host: match[1] ?? match[2] ?? '', port };
}

function refuseSharedPorts(settings: Settings, refuse: Refuse): void {
  const metrics = parseListenAddress(settings.prometheusAddr);
  const grpc = { name: 'GRPC_PORT', host: settings.grpcHost, port: settings.grpcPort };
  const listeners = [
    ...(settings.grpcUds === '' ? [grpc] : []),
    { name: 'PORT', host: settings.host, port: settings.port },
    { name: 'DEBUG_PORT', host: settings.debugHost, port: settings.debugPort },
    ...(servesReference(settings) && metrics !== undefined ? [{ name: 'PROMETHEUS_ADDR', ...metrics }] : []),
  ];
  const covers = (host: string, other: string): boolean =>
    [other, '', '::'].includes(host) || (host === '0.0.0.0' && isIPv4(other));
  for (const [at, { name, host, port }] of listeners.entries()) {
    const other = listeners
      .slice(0, at)
      .find((one) => one.port === port && (covers(one.host, host) || covers(host, one.host)));
    refuse(
      other !== undefined && port !== 0,
      name,
      `${other?.name} also uses port ${port}; choose a different port for one of the two`,
    );
  }
}

function refuseRedis(settings: Settings, given: GivenSettings, refuse: Refuse): void {
  const noUrl = settings.redisUrl === '';
  refuse(
    noUrl && settings.backendType === 'redis',
    'BACKEND_TYPE',
    'the value redis requires REDIS_URL; set REDIS_URL to the address of Redis, such as redis:6379',
  );
  refuse(
    noUrl && settings.perSecond,
    'REDIS_PERSECOND',
    'REDIS_URL is also required, because the Redis at REDIS_PERSECOND_URL keeps only one-second ' +
      'windows; set REDIS_URL to the address of the Redis for all other limits',
  );
  for (const [name, set] of [
    ['REDIS_SOCKET_TYPE', given.has('REDIS_SOCKET_TYPE')],
    ['REDIS_AUTH', settings.redisAuth !== ''],
    ['REDIS_AUTH_FILE', settings.redisAuthFile !== ''],
    ['REDIS_TLS', settings.redisTls],
  ] as const) {
    refuse(
      noUrl && set,
      name,
      `REDIS_URL is not set, so weir would keep buckets in memory; set REDIS_URL, or unset ${name}`,
    );
  }
  for (const prefix of REDIS_PREFIXES) {
    const instance = redisInstance(settings, prefix);
    refuse(
      instance.auth !== '' && instance.authFile !== '',
      `${prefix}_AUTH_FILE`,
      `${prefix}_AUTH is also set, but only one variable can provide the password; unset one of the two`,
    );
    if (noUrl || (prefix === 'REDIS_PERSECOND' && !settings.perSecond)) continue;
    const address = readRedisAddress(instance);
    if ('sentence' in address) refuse(true, address.variables, address.sentence);
  }
  // Redis Cluster hashes the text in the first braces of a key, which must be weir's hash tag.
  refuse(
    !noUrl && settings.cacheKeyPrefix.includes('{'),
    'CACHE_KEY_PREFIX',
    'the prefix contains "{", which begins a key\'s hash tag; choose a prefix without "{". weir uses ' +
      "the tenant as the hash tag, so that one node of a Redis Cluster keeps all of the tenant's buckets",
  );
}
