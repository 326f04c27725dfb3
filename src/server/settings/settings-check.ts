import { readRedisAddress, redisInstance } from './redis-address-settings.js';
import type { Settings } from './settings-table.js';

/** The names of variables that are set, on the command line or in the environment. */
export type GivenSettings = ReadonlySet<string>;

/** A token, RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;

const ENVOYS_FAMILIES = ['x-ratelimit', 'retry-after'];
const ENVOYS_X_RATELIMIT = /^x-ratelimit-(?:limit|remaining|reset)$/i;

const REDIS_PREFIXES = ['REDIS', 'REDIS_PERSECOND'] as const;

/**
 * What good values mean together that weir cannot do, or that nobody can: a line each, with the variable, the reason
 * and what to do instead. The start ends with them, as a variable that is ignored in silence limits something else than
 * its owner thinks.
 */
export function refusedSettings(settings: Settings, given: GivenSettings): readonly string[] {
  const refused: string[] = [];
  const refuse = (when: boolean, line: string): void => {
    if (when) refused.push(line);
  };
  const runtime = ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'].find((name) =>
    given.has(name),
  );
  refuse(
    given.has('CONFIG_PATH') && runtime !== undefined,
    `CONFIG_PATH: ${runtime} is set, too, and both say where the policies are; unset one of them`,
  );
  refuse(
    settings.backendType === 'memcache',
    'BACKEND_TYPE: weir has no memcache; use Redis (REDIS_URL), or leave both unset to keep buckets in memory',
  );
  refuse(
    settings.grpcMaxBufferedBytes < 2 * settings.grpcMaxMessageBytes,
    'GRPC_MAX_BUFFERED_BYTES: it must be at least twice GRPC_MAX_MESSAGE_BYTES, or a large message ' +
      'would end its own connection',
  );
  refuseRedis(settings, given, refuse);
  refuse(
    settings.configType === 'GRPC_XDS_SOTW' && /^https?:\/\//i.test(settings.xdsServerUrl),
    'CONFIG_GRPC_XDS_SERVER_URL: write host:port without a scheme; CONFIG_GRPC_XDS_SERVER_USE_TLS says ' +
      'whether it is TLS',
  );
  for (const [name, header] of [
    ['LIMIT_LIMIT_HEADER', settings.limitHeader],
    ['LIMIT_REMAINING_HEADER', settings.remainingHeader],
    ['LIMIT_RESET_HEADER', settings.resetHeader],
  ] as const) {
    refuse(
      !FIELD_NAME.test(header),
      `${name}: ${JSON.stringify(header)} is no header name; Envoy would refuse the answer. Use ` +
        'letters, digits and dashes',
    );
  }
  refuseDoubled(settings, refuse);
  refuse(
    settings.statsFlushInterval === 0,
    'STATS_FLUSH_INTERVAL: 0 ends the reference, too; set how often statistics are sent, such as 10s, ' +
      'or DISABLE_STATS=true',
  );
  refuse(
    settings.tracingEnabled,
    'TRACING_ENABLED: weir has no tracing yet; unset it. LOG_LEVEL=debug logs each decision, and /metrics has times',
  );
  return refused;
}

/** ENVOY_ADDS_HEADERS, and header names that it takes. */
function refuseDoubled(settings: Settings, refuse: (when: boolean, line: string) => void): void {
  const { envoyAddsHeaders, limitHeaders } = settings;
  const unknown = envoyAddsHeaders.find((family) => !ENVOYS_FAMILIES.includes(family));
  refuse(
    unknown !== undefined,
    `ENVOY_ADDS_HEADERS: ${JSON.stringify(unknown)} is nothing that Envoy's rate limit filter adds; ` +
      `choose from ${ENVOYS_FAMILIES.join(', ')}`,
  );
  for (const [name, header] of [
    ['LIMIT_LIMIT_HEADER', settings.limitHeader],
    ['LIMIT_REMAINING_HEADER', settings.remainingHeader],
    ['LIMIT_RESET_HEADER', settings.resetHeader],
  ] as const) {
    const isDoubled =
      (envoyAddsHeaders.includes('x-ratelimit') && ENVOYS_X_RATELIMIT.test(header)) ||
      (envoyAddsHeaders.includes('retry-after') && header.toLowerCase() === 'retry-after');
    refuse(
      limitHeaders && isDoubled,
      `${name}: ENVOY_ADDS_HEADERS says that Envoy adds ${header} itself, so clients would get it ` +
        'twice; choose another name, or unset one of them',
    );
  }
}

function refuseRedis(
  settings: Settings,
  given: GivenSettings,
  refuse: (when: boolean, line: string) => void,
): void {
  const noUrl = settings.redisUrl === '';
  refuse(
    noUrl && settings.backendType === 'redis',
    'BACKEND_TYPE: redis needs REDIS_URL, as in REDIS_URL=redis:6379',
  );
  refuse(noUrl && settings.perSecond, 'REDIS_PERSECOND: it needs REDIS_URL, too, for all other limits');
  for (const [name, set] of [
    ['REDIS_SOCKET_TYPE', given.has('REDIS_SOCKET_TYPE')],
    ['REDIS_AUTH', settings.redisAuth !== ''],
    ['REDIS_AUTH_FILE', settings.redisAuthFile !== ''],
    ['REDIS_TLS', settings.redisTls],
  ] as const) {
    refuse(
      noUrl && set,
      `${name}: REDIS_URL is not set, so buckets would live in memory; set REDIS_URL, or unset this`,
    );
  }
  const instances = REDIS_PREFIXES.map((prefix) => redisInstance(settings, prefix));
  for (const { prefix, timeout } of instances) {
    refuse(
      timeout === 0,
      `${prefix}_TIMEOUT: 0 is no limit in the reference, but here each decision ends in time; set the ` +
        'longest one may wait, such as 10s',
    );
  }
  const inUse = instances.filter(({ prefix }) => prefix === 'REDIS' || settings.perSecond);
  for (const { prefix, type } of inUse) {
    refuse(
      type !== 'single',
      `${prefix}_TYPE: weir speaks to one Redis for now; name the master in ${prefix}_URL and set ` +
        `${prefix}_TYPE=SINGLE`,
    );
  }
  for (const instance of noUrl ? [] : inUse) {
    // Where topologies are refused anyway, the address is not looked at.
    const address = instance.type === 'single' ? readRedisAddress(instance) : undefined;
    if (typeof address === 'string') refuse(true, address);
  }
  // The hash tag of a Redis Cluster is what stands in the first braces of a key, and must be ours.
  refuse(
    !noUrl && settings.cacheKeyPrefix.includes('{'),
    'CACHE_KEY_PREFIX: it holds "{", which in a Redis Cluster begins what chooses the node: weir puts ' +
      'the tenant there, so ' +
      'that all its buckets are decided at once; choose a prefix without "{"',
  );
  for (const { prefix, auth, authFile } of instances) {
    refuse(
      auth !== '' && authFile !== '',
      `${prefix}_AUTH_FILE: ${prefix}_AUTH is set, too; unset one of them`,
    );
  }
}
